-- Hash over the statistics of each user table. PostgreSQL 12+, any role that may read them.
-- schema, name; digest: over the number of rows, column statistics and extended statistics. Between two servers with
-- equal rows it differs only because of sampling or a different statistics target. The number of pages is no statistic:
-- the planner reads it from the file, and it depends on the block size. Nor is the number of
-- rows of a partitioned table, which only 14+ stores. An object of extended statistics may have two rows (15+).
SELECT n.nspname, c.relname,
       md5(concat_ws('|', CASE WHEN c.relkind <> 'p' THEN c.reltuples END, (
           SELECT string_agg(md5(concat_ws('|', s.attname, s.inherited, s.null_frac, s.avg_width, s.n_distinct,
                                           s.most_common_vals, s.most_common_freqs, s.histogram_bounds,
                                           s.correlation, s.most_common_elems, s.most_common_elem_freqs,
                                           s.elem_count_histogram)), '' ORDER BY s.attname, s.inherited)
           FROM pg_stats s
           WHERE s.schemaname = n.nspname AND s.tablename = c.relname), (
           SELECT string_agg(x.digest, '' ORDER BY x.digest)
           FROM (
               SELECT md5(concat_ws('|', e.statistics_name, e.attnames, e.n_distinct, e.dependencies,
                                    e.most_common_vals, e.most_common_freqs)) AS digest
               FROM pg_stats_ext e
               WHERE e.schemaname = n.nspname AND e.tablename = c.relname
           ) AS x)))
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm', 'p')
  AND c.relpersistence IN ('p', 'u')
  AND n.nspname NOT IN ('pg_catalog', 'information_schema')
  AND n.nspname NOT LIKE 'pg\_toast%'
  AND n.nspname NOT LIKE 'pg\_temp%'
ORDER BY 1, 2
