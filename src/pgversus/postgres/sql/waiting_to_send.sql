-- Sessions of others than pgversus that wait for their client to read what was sent to it. PostgreSQL 12+. A row for each.
SELECT pid
FROM pg_stat_activity
WHERE wait_event = 'ClientWrite'
  AND application_name <> 'pgversus'
