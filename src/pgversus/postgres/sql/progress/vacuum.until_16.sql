-- Progress of VACUUM. PostgreSQL 12 to 16, the session's own role or pg_read_all_stats. One row or none.
-- done, total: pages of the table. While indexes are vacuumed their number is not reported, so these are the pages
-- scanned so far.
SELECT phase,
       CASE phase WHEN 'vacuuming heap' THEN heap_blks_vacuumed ELSE heap_blks_scanned END AS done,
       heap_blks_total AS total,
       CASE phase WHEN 'vacuuming heap' THEN 'pages vacuumed' ELSE 'pages scanned' END AS unit
FROM pg_stat_progress_vacuum
WHERE pid = %(pid)s
