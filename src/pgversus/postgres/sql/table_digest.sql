-- Rows of one table and a hash of them that does not depend on their order. PostgreSQL 12+, SELECT on the table.
-- rows: count; digest: sum of the 64-bit hashes of all rows in text form, exact because it is numeric.
-- (x.*) is the row even if the table has a column named x.
-- Cost: one scan of the table, about a microsecond per row. {table} is a quoted, qualified name.
SELECT count(*),
       coalesce(sum(hashtextextended((pgversus_row.*)::text COLLATE "C", 0)::numeric), 0)::text
FROM ONLY {table} AS pgversus_row
