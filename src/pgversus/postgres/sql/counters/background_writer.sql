-- Background writer of the whole cluster. PostgreSQL 12+, any role. One row.
-- Cost: one record in memory; before 15 one read of the statistics file.
-- background_buffers_written: pages written by the background writer; buffers_allocated: buffers allocated for pages.
-- The writer reports when it wakes: every bgwriter_delay, or after 10 s if it had nothing to do.
SELECT buffers_clean AS background_buffers_written,
       buffers_alloc AS buffers_allocated
FROM pg_stat_bgwriter
