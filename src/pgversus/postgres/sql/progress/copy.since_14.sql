-- Progress of COPY. PostgreSQL 14+, the session's own role or pg_read_all_stats. One row or none.
-- phase: COPY FROM or COPY TO; done, total: MB of the file, or tuples if the data come from or go to a client.
SELECT command AS phase,
       CASE WHEN bytes_total > 0 THEN bytes_processed / 1000000 ELSE tuples_processed END AS done,
       CASE WHEN bytes_total > 0 THEN bytes_total / 1000000 END AS total,
       CASE WHEN bytes_total > 0 THEN 'MB' ELSE 'tuples' END AS unit
FROM pg_stat_progress_copy
WHERE pid = %(pid)s
