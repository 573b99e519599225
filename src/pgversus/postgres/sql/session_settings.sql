-- Every setting as a session of the load has it. PostgreSQL 12+, any role (some rows only for pg_read_all_settings).
-- name: the setting; value: as SHOW prints it, with unit; source: where the value comes from (pg_settings.source);
-- context: when it can be changed (pg_settings.context). Cost: one scan of the settings in memory.
SELECT name, current_setting(name, true), source, context
FROM pg_settings
ORDER BY name
