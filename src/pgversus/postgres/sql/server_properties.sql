-- Properties of the server and its database. PostgreSQL 12+, any role. One row.
-- version: version(), including the compiler; encoding of the database; collation: its libc locale, or the provider
-- (icu, builtin) and its locale, absent in 12 to 14, named daticulocale in 15 and 16 and datlocale since 17;
-- jit: whether JIT compilation is available when the setting jit is on.
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
