-- State of the sessions of a load. PostgreSQL 12+, managed servers; needs track_activities. Parameter: the ids of their
-- server processes. One row for each session that is still connected: id; whether it is executing something; whether it
-- waits for its client or for a lock of another session; start of its transaction or, outside a transaction, of its
-- last statement (epoch); last change of its state (epoch).
SELECT pid,
    state IN ('active', 'fastpath function call'),
    coalesce(wait_event_type, '') IN ('Client', 'Lock'),
    extract(epoch FROM coalesce(xact_start, query_start, backend_start))::float8,
    extract(epoch FROM coalesce(state_change, backend_start))::float8
FROM pg_stat_activity
WHERE pid = ANY (%s)
