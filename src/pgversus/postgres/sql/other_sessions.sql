-- Sessions of clients in this database besides the asking one. PostgreSQL 12+, any role. One row.
SELECT count(*)
FROM pg_stat_activity
WHERE backend_type = 'client backend'
  AND datname = current_database()
  AND pid <> pg_backend_pid()
