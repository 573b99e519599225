-- What a WAL sender that streams a base backup is doing. PostgreSQL 13+, its own role or pg_read_all_stats.
-- One row or none.
-- done, total: MB; there is no total where it was not to be estimated.
SELECT phase,
       backup_streamed / 1000000 AS done,
       backup_total / 1000000 AS total,
       'MB' AS unit
FROM pg_stat_progress_basebackup
WHERE pid = %(pid)s
