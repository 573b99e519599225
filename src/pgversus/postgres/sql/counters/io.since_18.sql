-- I/O on tables, indexes and temporary tables in the whole cluster. PostgreSQL 18+, any role. One row.
-- Cost: some eighty rows in memory.
-- client_*: client backends and background workers, including parallel workers; server_*: all processes. Reads of an
-- I/O worker are counted for the process that requested them. The WAL rows, new in 18, are omitted, since the sums of
-- earlier versions do not include WAL.
-- io_reads, io_writes, io_extends: operations of one or more blocks; *_bytes: their size; io_hits: buffer hits;
-- io_evictions: blocks evicted; io_fsyncs: files synced.
WITH io AS (
    SELECT *, backend_type IN ('client backend', 'background worker') AS is_client
    FROM pg_stat_io
    WHERE object <> 'wal'
)
SELECT sum(reads) FILTER (WHERE is_client)        AS client_io_reads,
       sum(read_bytes) FILTER (WHERE is_client)   AS client_io_read_bytes,
       sum(writes) FILTER (WHERE is_client)       AS client_io_writes,
       sum(write_bytes) FILTER (WHERE is_client)  AS client_io_write_bytes,
       sum(extends) FILTER (WHERE is_client)      AS client_io_extends,
       sum(extend_bytes) FILTER (WHERE is_client) AS client_io_extend_bytes,
       sum(hits) FILTER (WHERE is_client)         AS client_io_hits,
       sum(evictions) FILTER (WHERE is_client)    AS client_io_evictions,
       sum(fsyncs) FILTER (WHERE is_client)       AS client_io_fsyncs,
       sum(reads)                                 AS server_io_reads,
       sum(read_bytes)                            AS server_io_read_bytes,
       sum(writes)                                AS server_io_writes,
       sum(write_bytes)                           AS server_io_write_bytes,
       sum(extends)                               AS server_io_extends,
       sum(extend_bytes)                          AS server_io_extend_bytes,
       sum(hits)                                  AS server_io_hits,
       sum(evictions)                             AS server_io_evictions,
       sum(fsyncs)                                AS server_io_fsyncs
FROM io
