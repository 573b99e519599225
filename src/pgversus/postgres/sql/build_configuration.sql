-- Build configuration of the server. PostgreSQL 12+, superuser by default. One row for each item of pg_config.
-- name: CONFIGURE, CFLAGS, VERSION, ...; setting: its value.
SELECT name, setting
FROM pg_config
WHERE name IN ('CONFIGURE', 'CFLAGS', 'CC', 'VERSION', 'LDFLAGS', 'LIBS')
ORDER BY name
