-- Whether a trigger may change the rows that are written to the given tables or their partitions; true if one of these is
-- unknown, such as a temporary table. PostgreSQL 12+, any role.
WITH RECURSIVE written (oid) AS (
    SELECT c.oid
    FROM unnest(%s::text[], %s::text[]) AS target (schema, name)
    LEFT JOIN pg_namespace n ON n.nspname = target.schema
    LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = target.name
    UNION
    SELECT i.inhrelid
    FROM pg_inherits i
    JOIN written ON written.oid = i.inhparent
)
SELECT EXISTS (SELECT FROM written WHERE oid IS NULL)
    OR EXISTS (
        SELECT FROM pg_trigger t
        JOIN written ON written.oid = t.tgrelid
        WHERE NOT t.tgisinternal
          AND t.tgenabled <> 'D'
          AND t.tgtype & 1 <> 0             -- for each row
          AND t.tgtype & (2 | 64) <> 0      -- BEFORE, INSTEAD OF
    )
