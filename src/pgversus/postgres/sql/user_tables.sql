-- User tables and materialized views that hold rows. PostgreSQL 12+, any role.
-- schema, name: unquoted. Partitions are listed; partitioned tables and materialized views WITH NO DATA are not, since
-- they hold no rows themselves. Nor are unlogged tables on a standby, which cannot read them.
SELECT n.nspname, c.relname
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm')
  AND c.relispopulated
  AND (c.relpersistence = 'p' OR c.relpersistence = 'u' AND NOT pg_is_in_recovery())
  AND n.nspname NOT IN ('pg_catalog', 'information_schema')
  AND n.nspname NOT LIKE 'pg\_toast%'
  AND n.nspname NOT LIKE 'pg\_temp%'
ORDER BY 1, 2
