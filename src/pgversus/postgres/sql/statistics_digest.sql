-- A hash over what ANALYZE has found of each of the user's tables. PostgreSQL 12+, any role that may read them.
-- schema, name, digest: of the columns' statistics and of the table's size as the planner knows it; what differs
-- between two servers with equal rows is what sampling, or another statistics target, has made of them.
SELECT n.nspname, c.relname,
       md5(concat_ws('|', c.reltuples, c.relpages, (
           SELECT string_agg(md5(concat_ws('|', s.attname, s.inherited, s.null_frac, s.avg_width, s.n_distinct,
                                           s.most_common_vals, s.most_common_freqs, s.histogram_bounds,
                                           s.correlation, s.most_common_elems, s.most_common_elem_freqs,
                                           s.elem_count_histogram)), '' ORDER BY s.attname, s.inherited)
           FROM pg_stats s
           WHERE s.schemaname = n.nspname AND s.tablename = c.relname)))
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm', 'p')
  AND c.relpersistence IN ('p', 'u')
  AND n.nspname NOT IN ('pg_catalog', 'information_schema')
  AND n.nspname NOT LIKE 'pg\_toast%'
  AND n.nspname NOT LIKE 'pg\_temp%'
ORDER BY 1, 2
