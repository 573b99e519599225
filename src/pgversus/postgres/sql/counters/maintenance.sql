-- Automatic maintenance of this database's tables. PostgreSQL 12+, any role. One row.
-- Cost: one scan of pg_class and its indexes, some milliseconds for a thousand tables.
-- autovacuum_runs, autoanalyze_runs: of all tables that exist now, including system tables. The runs of a dropped table
-- are no longer counted.
SELECT sum(autovacuum_count)  AS autovacuum_runs,
       sum(autoanalyze_count) AS autoanalyze_runs
FROM pg_stat_all_tables
