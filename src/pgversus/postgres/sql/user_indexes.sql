-- Indexes on user tables. PostgreSQL 12+, any role.
-- schema, name, definition: as pg_get_indexdef prints it.
SELECT schemaname, indexname, indexdef
FROM pg_indexes
WHERE schemaname NOT IN ('pg_catalog', 'information_schema')
  AND schemaname NOT LIKE 'pg\_toast%'
ORDER BY 1, 2
