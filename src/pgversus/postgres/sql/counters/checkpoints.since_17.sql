-- Checkpoints of the whole cluster. PostgreSQL 17+, any role. One row. Cost: one record in memory.
-- checkpoints_timed: due by time, including skipped ones; checkpoints_requested: by WAL volume, CHECKPOINT and others;
-- checkpoint_buffers_written: pages, without those of SLRUs, as in the view until 16; checkpoint_write_s,
-- checkpoint_sync_s: time spent writing and syncing, including restartpoints.
SELECT num_timed         AS checkpoints_timed,
       num_requested     AS checkpoints_requested,
       buffers_written   AS checkpoint_buffers_written,
       write_time / 1000 AS checkpoint_write_s,
       sync_time / 1000  AS checkpoint_sync_s
FROM pg_stat_checkpointer
