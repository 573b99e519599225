-- Progress of CLUSTER or VACUUM FULL. PostgreSQL 12+, the session's own role or pg_read_all_stats.
-- One row or none.
-- done, total: pages, tuples or rebuilt indexes; total is null in an index scan, whose number of tuples is unknown.
SELECT phase,
       CASE phase WHEN 'seq scanning heap' THEN heap_blks_scanned
                  WHEN 'index scanning heap' THEN heap_tuples_scanned
                  WHEN 'writing new heap' THEN heap_tuples_written
                  WHEN 'rebuilding index' THEN index_rebuild_count
       END AS done,
       CASE phase WHEN 'seq scanning heap' THEN heap_blks_total
                  WHEN 'writing new heap' THEN heap_tuples_scanned
       END AS total,
       CASE phase WHEN 'seq scanning heap' THEN 'pages'
                  WHEN 'rebuilding index' THEN 'indexes'
                  ELSE 'tuples'
       END AS unit
FROM pg_stat_progress_cluster
WHERE pid = %(pid)s
