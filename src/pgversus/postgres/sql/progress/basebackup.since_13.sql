-- Progress of a WAL sender that streams a base backup. PostgreSQL 13+, its own role or pg_read_all_stats.
-- One row or none.
-- done, total: MB; total is null if the size was not estimated.
SELECT phase,
       backup_streamed / 1000000 AS done,
       backup_total / 1000000 AS total,
       'MB' AS unit
FROM pg_stat_progress_basebackup
WHERE pid = %(pid)s
