-- Size of this database's files. PostgreSQL 12+, any role that may connect. One row. Cost: stat() of each file.
SELECT pg_database_size(current_database())
