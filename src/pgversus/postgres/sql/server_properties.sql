-- What the server is. PostgreSQL 12+, any role. One row.
-- version: version() with compiler; version_num: 170008; encoding, collation, character type, provider of the database;
-- jit: whether JIT compilation can be used.
SELECT version(),
       current_setting('server_version_num')::int,
       pg_encoding_to_char(encoding),
       datcollate,
       datctype,
       pg_jit_available()
FROM pg_database
WHERE datname = current_database()
