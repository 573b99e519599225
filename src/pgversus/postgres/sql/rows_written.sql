-- Rows inserted, updated and deleted in this database since the last statistics reset. PostgreSQL 12+, any role.
-- One row.
SELECT tup_inserted + tup_updated + tup_deleted
FROM pg_stat_database
WHERE datname = current_database()
