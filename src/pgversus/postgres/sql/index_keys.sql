-- Keys of the ordered indexes on user tables, as in an ORDER BY. PostgreSQL 12+, any role.
-- name: EXPLAIN prints it without a schema, so names of several indexes are left out; keys: in order, with DESC and
-- NULLS where they are not the default. Bits of indoption: 1 descending, 2 nulls first.
SELECT i.relname,
       array_agg(
           pg_get_indexdef(x.indexrelid, key.number::int, false)
           || CASE WHEN key.option & 1 = 1 THEN ' DESC' ELSE '' END
           || CASE key.option WHEN 1 THEN ' NULLS LAST' WHEN 2 THEN ' NULLS FIRST' ELSE '' END
           ORDER BY key.number
       )
FROM pg_index x
JOIN pg_class i ON i.oid = x.indexrelid
JOIN pg_am a ON a.oid = i.relam
CROSS JOIN LATERAL unnest(x.indoption::int[]) WITH ORDINALITY AS key (option, number)
WHERE a.amname = 'btree'
  AND i.relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace, 'pg_toast'::regnamespace)
  AND x.indexprs IS NULL
  AND x.indpred IS NULL
  AND 1 = (SELECT count(*) FROM pg_class other WHERE other.relname = i.relname AND other.relkind IN ('i', 'I'))
GROUP BY x.indexrelid, i.relname
ORDER BY i.relname
