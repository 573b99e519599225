-- Load user tables and indexes into shared buffers if these can hold all of them, otherwise into the operating
-- system's cache. PostgreSQL 12+, superuser, extension pg_prewarm. Cost: reading the database once.
-- Parameter: whether shared buffers may be used.
-- One row: the number of blocks, whether shared buffers can hold all tables and indexes, and whether they can hold the
-- whole database, catalogs and TOAST included.
WITH relation AS (
    SELECT c.oid, pg_relation_size(c.oid) AS bytes
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'm', 'i')
      AND c.relpersistence IN ('p', 'u')
      AND n.nspname NOT IN ('pg_catalog', 'information_schema')
      AND n.nspname NOT LIKE 'pg\_toast%%'
), fit AS (
    SELECT coalesce(sum(bytes), 0) <= pg_size_bytes(current_setting('shared_buffers')) AS all_fit
    FROM relation
)
SELECT coalesce(sum(pg_prewarm(oid::regclass, CASE WHEN all_fit AND %s THEN 'buffer' ELSE 'read' END)), 0)::bigint,
    coalesce(bool_and(all_fit), true),
    pg_database_size(current_database()) <= pg_size_bytes(current_setting('shared_buffers'))
FROM relation, fit
