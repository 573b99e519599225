-- Values of a column from its statistics. PostgreSQL 12+, superuser by default.
-- Parameters: the table, quoted and qualified where necessary; the column.
-- most_common, histogram: values as text, NULL if there are none; of all children of a table that has some, and of the
-- partitioned table for a partition, if that was analyzed.
-- is_unique: whether a unique index contains the column, or an expression of it.
SELECT s.most_common_vals::text::text[],
       s.histogram_bounds::text::text[],
       EXISTS (
           SELECT FROM pg_index AS i
           WHERE i.indrelid = c.oid AND i.indisunique
             AND (a.attnum = ANY (i.indkey)
                  OR EXISTS (SELECT FROM pg_depend AS d
                             WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
                               AND d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid
                               AND d.refobjsubid = a.attnum))
       )
FROM pg_stats AS s
JOIN pg_namespace AS n ON n.nspname = s.schemaname
JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = s.tablename
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = s.attname
CROSS JOIN (SELECT one.oid, pg_partition_root(one.oid) AS root FROM (SELECT to_regclass(%s) AS oid) AS one) AS wanted
WHERE c.oid IN (wanted.oid, wanted.root) AND s.attname = %s
ORDER BY c.oid = wanted.root DESC NULLS LAST, s.inherited DESC
LIMIT 1
