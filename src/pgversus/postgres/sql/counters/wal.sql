-- Write-ahead log that the whole cluster has generated. PostgreSQL 14+, any role. One row.
-- Cost: one record in memory; in 14 one reading of the statistics file.
-- wal_records: records; wal_full_page_images: those that hold a whole page; wal_bytes: of all of them.
SELECT wal_records,
       wal_fpi AS wal_full_page_images,
       wal_bytes
FROM pg_stat_wal
