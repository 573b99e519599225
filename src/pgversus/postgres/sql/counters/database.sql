-- What happened in this database since its statistics began. PostgreSQL 12+, any role. One row.
-- Cost: one row of the statistics in memory; before 15 one reading of the statistics file.
-- transactions_*: those of pgversus' own sessions are in it. buffers_hit, buffers_read: pages of the build's block size,
-- parallel workers' included; read means asked of the system, which may have it in its cache. temp_*: files that sorts,
-- hashes and the like spilled into, counted when they are removed. tuples_returned: rows scanned; tuples_fetched: rows
-- that index scans found; tuples_inserted, _updated, _deleted: rows written, those of system tables too.
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
