-- Checkpoints of the whole cluster. PostgreSQL 12 to 16, any role. One row.
-- Cost: one record in memory; before 15 one read of the statistics file.
-- checkpoints_timed: due by time, including skipped ones; checkpoints_requested: by WAL volume, CHECKPOINT and others;
-- checkpoint_buffers_written: pages; checkpoint_write_s, checkpoint_sync_s: time spent writing and syncing.
SELECT checkpoints_timed,
       checkpoints_req              AS checkpoints_requested,
       buffers_checkpoint           AS checkpoint_buffers_written,
       checkpoint_write_time / 1000 AS checkpoint_write_s,
       checkpoint_sync_time / 1000  AS checkpoint_sync_s
FROM pg_stat_bgwriter
