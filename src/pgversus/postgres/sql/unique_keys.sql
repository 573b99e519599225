-- Columns that identify a row of a user table: the keys of unique indexes without nulls. PostgreSQL 12+, any role.
-- Left out: partial, deferrable and invalid indexes, indexes on expressions, and those whose equality differs from that of
-- ORDER BY (another operator class or collation). Columns that are only INCLUDEd are not keys.
SELECT n.nspname, c.relname, array_agg(a.attname::text ORDER BY key.number)
FROM pg_index x
JOIN pg_class c ON c.oid = x.indrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL unnest(x.indkey::int2[], x.indclass::oid[], x.indcollation::oid[])
    WITH ORDINALITY AS key (attribute, class, sorting, number)
JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = key.attribute
JOIN pg_opclass o ON o.oid = key.class
WHERE x.indisunique
  AND x.indimmediate
  AND x.indisvalid
  AND x.indexprs IS NULL
  AND x.indpred IS NULL
  AND key.number <= x.indnkeyatts
  AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
GROUP BY x.indexrelid, n.nspname, c.relname
HAVING bool_and(a.attnotnull AND o.opcdefault AND key.sorting = a.attcollation)
ORDER BY n.nspname, c.relname
