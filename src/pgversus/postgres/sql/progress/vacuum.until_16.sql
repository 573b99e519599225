-- What a session that vacuums is doing. PostgreSQL 12 to 16, the session's own role or pg_read_all_stats. One row or none.
-- done, total: pages of the table. While it vacuums indexes it does not say how many of them; what is told then is how
-- much of the table it has scanned until now.
SELECT phase,
       CASE phase WHEN 'vacuuming heap' THEN heap_blks_vacuumed ELSE heap_blks_scanned END AS done,
       heap_blks_total AS total,
       CASE phase WHEN 'vacuuming heap' THEN 'pages vacuumed' ELSE 'pages scanned' END AS unit
FROM pg_stat_progress_vacuum
WHERE pid = %(pid)s
