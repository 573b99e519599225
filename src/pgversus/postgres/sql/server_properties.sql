-- What the server and its database are. PostgreSQL 12+, any role. One row.
-- version: version() with compiler; encoding of the database; collation: its libc locale, or the provider (icu, builtin)
-- and its locale, which 12 to 14 have not, 15 and 16 call daticulocale, and 17 calls datlocale;
-- jit: whether JIT compilation can be used, as long as the setting jit is on.
SELECT version(),
       pg_encoding_to_char(encoding),
       CASE coalesce(to_jsonb(d) ->> 'datlocprovider', 'c')
           WHEN 'c' THEN datcollate
           WHEN 'i' THEN concat_ws(' ', 'icu', to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale')
           ELSE concat_ws(' ', 'builtin', to_jsonb(d) ->> 'datlocale')
       END,
       pg_jit_available()
FROM pg_database AS d
WHERE datname = current_database()
