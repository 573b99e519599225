-- The dump is in the data directory, so it becomes part of the snapshot.
\! pg_dump --format custom --file "$PGDATA/all.dump"
-- Rows found after the operation have therefore been restored.
DROP TABLE pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers;
