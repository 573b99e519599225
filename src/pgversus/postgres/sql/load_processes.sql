-- Server processes of the sessions of a load that began after one time and have been at work after another, oldest
-- first. Parameters: both times, as epochs.
-- PostgreSQL 12+, managed servers. One row for each session that has a state: without one it is still authenticating.
SELECT pid
FROM pg_stat_activity
WHERE backend_type = 'client backend'
  AND application_name <> 'pgversus'
  AND backend_start > to_timestamp(%s)
  AND (state IN ('active', 'fastpath function call') OR state_change > to_timestamp(%s))
ORDER BY backend_start, pid
