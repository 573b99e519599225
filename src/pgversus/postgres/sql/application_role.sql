-- The role that executes the statements of an application: it reads and writes all tables of users, and nothing else.
-- PostgreSQL 12+, superuser. It may execute all functions of users, but no functions of extensions that are not public.
DO $$
DECLARE
    one text;
BEGIN
    CREATE ROLE {role} LOGIN BYPASSRLS;
    GRANT pg_monitor TO {role};
    FOR one IN
        SELECT oid::regnamespace FROM pg_namespace
        WHERE nspname NOT LIKE 'pg\_%' AND nspname <> 'information_schema'
    LOOP
        EXECUTE 'GRANT USAGE ON SCHEMA ' || one || ' TO {role}';
        -- 14+ has roles with these rights, but a grant on each table works everywhere.
        EXECUTE 'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ' || one || ' TO {role}';
        EXECUTE 'GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA ' || one || ' TO {role}';
    END LOOP;
    FOR one IN
        SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema'
          AND NOT has_function_privilege('{role}', p.oid, 'EXECUTE')
          AND NOT EXISTS (
              SELECT FROM pg_depend d
              WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
    LOOP
        EXECUTE 'GRANT EXECUTE ON ROUTINE ' || one || ' TO {role}';
    END LOOP;
END
$$
