-- Makes this session report its statistics at the end of the transaction. PostgreSQL 15+, any role. No counter.
-- A session otherwise reports at most once a second: the work of a reading would appear in the next or the one after.
SELECT NULL AS nothing
FROM pg_stat_force_next_flush()
