-- Read operations of the whole cluster. PostgreSQL 16 alone, any role. One row. Cost: some eighty rows in memory.
-- In 16 a read is always one block, so that the view counts operations, as it does again from 18 on.
-- client_*: client backends and background workers, including parallel workers; server_*: all processes.
SELECT sum(reads) FILTER (WHERE backend_type IN ('client backend', 'background worker')) AS client_io_reads,
       sum(reads)                                                                        AS server_io_reads
FROM pg_stat_io
