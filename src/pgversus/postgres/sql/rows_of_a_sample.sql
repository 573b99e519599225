-- Row count of the largest table, including its partitions or children, since ANALYZE samples these together.
-- A partitioned table has no rows of its own, but from 14 on ANALYZE stores the total for it.
WITH RECURSIVE family (root, member) AS (
    SELECT c.oid, c.oid
    FROM pg_class c
    WHERE c.relkind IN ('r', 'm', 'p') AND c.relnamespace::regnamespace::text !~ '^(pg_|information_schema$)'
    UNION
    SELECT family.root, pg_inherits.inhrelid
    FROM family
    JOIN pg_inherits ON pg_inherits.inhparent = family.member
)
SELECT coalesce(max(rows), 0)::float8
FROM (
    SELECT sum(greatest(c.reltuples, 0)) AS rows
    FROM family
    JOIN pg_class c ON c.oid = family.member AND c.relkind <> 'p'
    GROUP BY family.root
) AS families
