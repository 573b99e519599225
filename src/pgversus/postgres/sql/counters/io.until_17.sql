-- I/O on tables, indexes and temporary tables in the whole cluster. PostgreSQL 16 to 17, any role. One row.
-- Cost: some eighty rows in memory.
-- client_*: client backends and background workers, including parallel workers; server_*: all processes.
-- *_bytes: until 17 the view counts blocks of op_bytes instead of system calls. A write is one block, so that io_writes
-- means the same in every version. A read (17) or an extension (16, 17) can be many blocks in one call, and the number
-- of calls is not reported. io_hits: buffer hits; io_evictions: blocks evicted; io_fsyncs: files synced.
WITH io AS (
    SELECT *, backend_type IN ('client backend', 'background worker') AS is_client
    FROM pg_stat_io
)
SELECT sum(reads * op_bytes) FILTER (WHERE is_client)   AS client_io_read_bytes,
       sum(writes) FILTER (WHERE is_client)             AS client_io_writes,
       sum(writes * op_bytes) FILTER (WHERE is_client)  AS client_io_write_bytes,
       sum(extends * op_bytes) FILTER (WHERE is_client) AS client_io_extend_bytes,
       sum(hits) FILTER (WHERE is_client)               AS client_io_hits,
       sum(evictions) FILTER (WHERE is_client)          AS client_io_evictions,
       sum(fsyncs) FILTER (WHERE is_client)             AS client_io_fsyncs,
       sum(reads * op_bytes)                            AS server_io_read_bytes,
       sum(writes)                                      AS server_io_writes,
       sum(writes * op_bytes)                           AS server_io_write_bytes,
       sum(extends * op_bytes)                          AS server_io_extend_bytes,
       sum(hits)                                        AS server_io_hits,
       sum(evictions)                                   AS server_io_evictions,
       sum(fsyncs)                                      AS server_io_fsyncs
FROM io
