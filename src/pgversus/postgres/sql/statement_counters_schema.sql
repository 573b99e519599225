-- The schema of the extension pg_stat_statements. PostgreSQL 12+.
-- One row; none if this database does not have it.
SELECT nspname
FROM pg_extension
JOIN pg_namespace ON pg_namespace.oid = extnamespace
WHERE extname = 'pg_stat_statements'
