-- Settings that a session may change and that decide how statements are planned, or how much memory they get.
-- PostgreSQL 12+, any role. name, setting, boot_val: in the unit of pg_settings, without it; vartype.
-- boot_val is the default that is compiled in: what differs there between two majors is a changed default.
SELECT name, setting, boot_val, vartype
FROM pg_settings
WHERE context IN ('user', 'superuser')
  AND vartype IN ('bool', 'integer', 'real', 'enum')
  AND (category LIKE 'Query Tuning%'
       OR category IN ('Resource Usage / Memory', 'Resource Usage / Asynchronous Behavior', 'Resource Usage / I/O'))
ORDER BY name
