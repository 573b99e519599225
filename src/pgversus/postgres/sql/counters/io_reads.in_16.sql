-- How often the cluster's processes read. PostgreSQL 16 alone, any role. One row. Cost: some eighty rows in memory.
-- In 16 a read is always one block, so that the view's count is that of operations, as it is again from 18.
-- client_*: client backends and background workers, which parallel workers are; server_*: all processes.
SELECT sum(reads) FILTER (WHERE backend_type IN ('client backend', 'background worker')) AS client_io_reads,
       sum(reads)                                                                        AS server_io_reads
FROM pg_stat_io
