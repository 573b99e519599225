-- Settings that a session may change and that affect plans or the memory of statements.
-- PostgreSQL 12+, any role. name; setting, boot_val: in the unit of pg_settings, without the unit; vartype.
-- boot_val is the compiled-in default: a difference between two majors is a changed default.
SELECT name, setting, boot_val, vartype
FROM pg_settings
WHERE context IN ('user', 'superuser')
  AND vartype IN ('bool', 'integer', 'real', 'enum')
  AND (category LIKE 'Query Tuning%'
       OR category IN ('Resource Usage / Memory', 'Resource Usage / Asynchronous Behavior', 'Resource Usage / I/O'))
ORDER BY name
