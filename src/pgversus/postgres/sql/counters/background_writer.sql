-- The background writer of the whole cluster. PostgreSQL 12+, any role. One row.
-- Cost: one record in memory; before 15 one reading of the statistics file.
-- background_buffers_written: pages it wrote ahead of need; buffers_allocated: pages for which a buffer was found.
-- The writer reports when it wakes: every bgwriter_delay, but after 10 s when there was nothing for it to do.
SELECT buffers_clean AS background_buffers_written,
       buffers_alloc AS buffers_allocated
FROM pg_stat_bgwriter
