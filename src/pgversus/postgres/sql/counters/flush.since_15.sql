-- Lets the asking session report what it has done at the end of this transaction. PostgreSQL 15+, any role. No counter.
-- A session reports once in a second at most: what one reading adds would show up in the next, or in the one after it.
SELECT NULL AS nothing
FROM pg_stat_force_next_flush()
