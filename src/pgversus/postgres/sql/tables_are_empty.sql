-- Whether there are tables of users and none of them had a row when it was last analyzed. PostgreSQL 12+, any role.
-- The rows of foreign tables are unknown.
SELECT coalesce(bool_and(c.relkind <> 'f' AND c.reltuples <= 0), false)
FROM pg_class c
WHERE c.relkind IN ('r', 'm', 'f') AND c.relnamespace::regnamespace::text !~ '^(pg_|information_schema$)'
