-- Tables that ANALYZE reads without connecting to another server, if the database has foreign tables; otherwise none.
-- PostgreSQL 12+, any role. name: quoted and qualified. Parents of foreign tables are left out.
SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) AS name
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE EXISTS (SELECT FROM pg_foreign_table)
  AND c.relkind IN ('r', 'm', 'p')
  AND c.relpersistence IN ('p', 'u')
  AND n.nspname NOT LIKE 'pg\_toast%'
  AND n.nspname NOT LIKE 'pg\_temp%'
  AND c.oid NOT IN (
      WITH RECURSIVE parents AS (
          SELECT i.inhparent FROM pg_inherits i JOIN pg_foreign_table f ON f.ftrelid = i.inhrelid
          UNION
          SELECT i.inhparent FROM pg_inherits i JOIN parents p ON p.inhparent = i.inhrelid
      )
      SELECT inhparent FROM parents
  )
ORDER BY 1
