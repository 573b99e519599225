-- Values of a column from its statistics. PostgreSQL 12+, superuser by default.
-- Parameters: the table, quoted and qualified where necessary; the column.
-- most_common, histogram: values as text, NULL if there are none; of all children of a table that has some.
SELECT s.most_common_vals::text::text[], s.histogram_bounds::text::text[]
FROM pg_stats AS s
JOIN pg_namespace AS n ON n.nspname = s.schemaname
JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = s.tablename
WHERE c.oid = to_regclass(%s) AND s.attname = %s
ORDER BY s.inherited DESC
LIMIT 1
