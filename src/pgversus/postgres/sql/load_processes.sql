-- Server processes of the sessions of a load that began after a moment and have been at work after another one, the
-- oldest first. Parameters: the epochs of both.
-- PostgreSQL 12+, on a server of ours. A row for each that has reported a state: before, it is still being authenticated.
SELECT pid
FROM pg_stat_activity
WHERE backend_type = 'client backend'
  AND application_name <> 'pgversus'
  AND backend_start > to_timestamp(%s)
  AND (state IN ('active', 'fastpath function call') OR state_change > to_timestamp(%s))
ORDER BY backend_start, pid
