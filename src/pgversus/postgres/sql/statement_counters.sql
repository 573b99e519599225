-- What pg_stat_statements has counted in this database, with all columns that it has. PostgreSQL 12+.
-- One row for each statement and user.
SELECT *
FROM {view}
WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
