-- What sessions of a load are doing. PostgreSQL 12+, on a server of ours; needs track_activities. Parameter: the ids of
-- their server processes. A row for each that is still connected: id; whether it has something to do; whether it waits
-- for its client, or for a lock of another session; the epoch at which its transaction began, or its last statement
-- where it is in none; the epoch at which its state last changed.
SELECT pid,
    state IN ('active', 'fastpath function call'),
    coalesce(wait_event_type, '') IN ('Client', 'Lock'),
    extract(epoch FROM coalesce(xact_start, query_start, backend_start))::float8,
    extract(epoch FROM coalesce(state_change, backend_start))::float8
FROM pg_stat_activity
WHERE pid = ANY (%s)
