-- Progress of VACUUM. PostgreSQL 17+, the session's own role or pg_read_all_stats. One row or none.
-- done, total: pages of the table, or its indexes while these are vacuumed.
SELECT phase,
       CASE WHEN indexes_total > 0 THEN indexes_processed
            WHEN phase = 'vacuuming heap' THEN heap_blks_vacuumed
            ELSE heap_blks_scanned
       END AS done,
       CASE WHEN indexes_total > 0 THEN indexes_total ELSE heap_blks_total END AS total,
       CASE WHEN indexes_total > 0 THEN 'indexes'
            WHEN phase = 'vacuuming heap' THEN 'pages vacuumed'
            ELSE 'pages scanned'
       END AS unit
FROM pg_stat_progress_vacuum
WHERE pid = %(pid)s
