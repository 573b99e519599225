-- Number of other client sessions in this database. PostgreSQL 12+, any role. One row.
SELECT count(*)
FROM pg_stat_activity
WHERE backend_type = 'client backend'
  AND datname = current_database()
  AND pid <> pg_backend_pid()
