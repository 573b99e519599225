-- All settings of a session of the load. PostgreSQL 12+, any role (some rows only for pg_read_all_settings).
-- name: the setting; value: as SHOW prints it, with unit; source: origin of the value (pg_settings.source);
-- context: when it can be changed (pg_settings.context). Cost: one scan of the settings in memory.
SELECT name, current_setting(name, true), source, context
FROM pg_settings
ORDER BY name
