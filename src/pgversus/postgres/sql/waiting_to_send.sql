-- Sessions, other than pgversus' own, that wait for their client to read their output. PostgreSQL 12+.
-- One row for each.
SELECT pid
FROM pg_stat_activity
WHERE wait_event = 'ClientWrite'
  AND application_name <> 'pgversus'
