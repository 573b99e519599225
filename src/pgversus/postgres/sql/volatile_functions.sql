-- Names of the given functions of which one is volatile. PostgreSQL 12+, any role.
-- schema: empty if EXPLAIN printed none, because the search path finds the function.
SELECT DISTINCT called.schema, called.name
FROM unnest(%s::text[], %s::text[]) AS called (schema, name)
JOIN pg_proc p ON p.proname = called.name
JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE p.provolatile = 'v'
  AND CASE called.schema WHEN '' THEN pg_function_is_visible(p.oid) ELSE n.nspname = called.schema END
ORDER BY 1, 2
