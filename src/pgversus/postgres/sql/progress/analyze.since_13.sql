-- Progress of ANALYZE. PostgreSQL 13+, the session's own role or pg_read_all_stats. One row or none.
-- done, total: pages of the sample, or extended statistics; null in other phases.
SELECT phase,
       CASE WHEN phase = 'computing extended statistics' THEN ext_stats_computed
            WHEN phase LIKE 'acquiring%%' THEN sample_blks_scanned
       END AS done,
       CASE WHEN phase = 'computing extended statistics' THEN ext_stats_total
            WHEN phase LIKE 'acquiring%%' THEN sample_blks_total
       END AS total,
       CASE WHEN phase = 'computing extended statistics' THEN 'statistics' ELSE 'pages' END AS unit
FROM pg_stat_progress_analyze
WHERE pid = %(pid)s
