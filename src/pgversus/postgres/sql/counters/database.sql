-- Activity in this database since its statistics were reset. PostgreSQL 12+, any role. One row.
-- Cost: one row of the statistics in memory; before 15 one read of the statistics file.
-- transactions_*: including pgversus' own sessions. buffers_hit, buffers_read: pages of the build's block size,
-- including those of parallel workers; buffers_read: requested from the operating system, which may have them cached.
-- temp_*: files that sorts, hashes and others spilled into, counted when they are removed. tuples_returned: rows
-- scanned; tuples_fetched: rows found by index scans; tuples_inserted, _updated, _deleted: rows written, including
-- system tables.
SELECT xact_commit   AS transactions_committed,
       xact_rollback AS transactions_rolled_back,
       blks_hit      AS buffers_hit,
       blks_read     AS buffers_read,
       temp_files,
       temp_bytes,
       deadlocks,
       tup_returned  AS tuples_returned,
       tup_fetched   AS tuples_fetched,
       tup_inserted  AS tuples_inserted,
       tup_updated   AS tuples_updated,
       tup_deleted   AS tuples_deleted
FROM pg_stat_database
WHERE datname = current_database()
