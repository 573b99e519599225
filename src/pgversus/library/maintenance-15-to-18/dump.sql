-- The dump lies among the server's own files, so that it is frozen and copied with them.
\! pg_dump --format custom --file "$PGDATA/all.dump"
-- What is there afterwards has been restored.
DROP TABLE pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers;
