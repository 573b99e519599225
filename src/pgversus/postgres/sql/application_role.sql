-- The role that executes the statements of an application: it uses and creates objects in the schemas of users, reads
-- the server's counters, and has no rights on the host. Statements reach no other server from then on: its data may be
-- in use. PostgreSQL 12+, superuser. The role has the superuser's own settings.
DO $$
DECLARE
    one text;
BEGIN
    -- Event triggers of the application do not concern these grants.
    PERFORM set_config('session_replication_role', 'replica', true);
    -- A dump may name it.
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN
        CREATE ROLE {role};
    END IF;
    ALTER ROLE {role} LOGIN BYPASSRLS NOSUPERUSER NOCREATEROLE NOCREATEDB NOREPLICATION;
    -- All large objects of a restored dump belong to the superuser.
    ALTER ROLE {role} SET lo_compat_privileges = on;
    GRANT pg_monitor TO {role};
    EXECUTE 'GRANT CONNECT, TEMPORARY ON DATABASE ' || quote_ident(current_database()) || ' TO {role}';
    FOR one IN
        SELECT oid::regnamespace FROM pg_namespace
        WHERE nspname NOT LIKE 'pg\_%' AND nspname <> 'information_schema'
    LOOP
        EXECUTE 'GRANT USAGE, CREATE ON SCHEMA ' || one || ' TO {role}';
        -- 14+ has roles with these rights, but a grant on each table works everywhere.
        EXECUTE 'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ' || one || ' TO {role}';
        EXECUTE 'GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA ' || one || ' TO {role}';
    END LOOP;
    -- Tables of extensions may contain work for a superuser.
    FOR one IN
        SELECT c.oid::regclass FROM pg_class c
        JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
        WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
    LOOP
        EXECUTE 'REVOKE INSERT, UPDATE, DELETE ON ' || one || ' FROM {role}';
    END LOOP;
    FOR one IN
        SELECT format(
            CASE WHEN p.prosecdef THEN 'ALTER ROUTINE %s OWNER TO {role}' ELSE 'GRANT EXECUTE ON ROUTINE %s TO {role}' END,
            p.oid::regprocedure)
        FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema'
          -- SECURITY DEFINER functions would be executed by the superuser, who owns everything that was restored.
          AND (p.prosecdef OR NOT has_function_privilege('{role}', p.oid, 'EXECUTE'))
          AND NOT EXISTS (
              SELECT FROM pg_depend d
              WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
    LOOP
        EXECUTE one;
    END LOOP;
    -- Without a handler, no foreign table can be read, not even through a view of the superuser.
    FOR one IN SELECT quote_ident(fdwname) FROM pg_foreign_data_wrapper WHERE fdwhandler <> 0
    LOOP
        EXECUTE 'ALTER FOREIGN DATA WRAPPER ' || one || ' NO HANDLER';
    END LOOP;
    FOR one IN
        SELECT p.oid::regprocedure FROM pg_proc p
        JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
        JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND e.oid = d.refobjid
        WHERE e.extname = 'dblink'
    LOOP
        EXECUTE 'REVOKE EXECUTE ON FUNCTION ' || one || ' FROM PUBLIC, pg_monitor, {role}';
    END LOOP;
    -- Those of the database come last, because they take precedence.
    FOR one IN
        SELECT setting FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole, unnest(setconfig) AS setting
        WHERE r.rolname = current_user
          AND s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
          AND split_part(setting, '=', 1) NOT IN ('role', 'session_authorization')
        ORDER BY s.setdatabase
    LOOP
        BEGIN
            PERFORM set_config(split_part(one, '=', 1), substr(one, strpos(one, '=') + 1), true);
            EXECUTE 'ALTER ROLE {role} SET ' || (
                SELECT string_agg(quote_ident(part), '.')
                FROM unnest(string_to_array(split_part(one, '=', 1), '.')) AS part) || ' FROM CURRENT';
        EXCEPTION WHEN OTHERS THEN
            -- A value that the superuser's sessions do not accept either.
            NULL;
        END;
    END LOOP;
END
$$
