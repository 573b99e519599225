-- Progress of an index build. PostgreSQL 12+, the session's own role or pg_read_all_stats.
-- One row or none.
-- done, total: sessions waited for, pages scanned, or tuples inserted. Numbers of earlier phases stay in the view, so
-- each is read only in its own phase.
SELECT phase,
       CASE WHEN phase LIKE 'waiting%%' THEN lockers_done
            WHEN phase LIKE '%%scanning%%' THEN blocks_done
            WHEN tuples_total > 0 THEN tuples_done
       END AS done,
       CASE WHEN phase LIKE 'waiting%%' THEN lockers_total
            WHEN phase LIKE '%%scanning%%' THEN blocks_total
            WHEN tuples_total > 0 THEN tuples_total
       END AS total,
       CASE WHEN phase LIKE 'waiting%%' THEN 'sessions'
            WHEN phase LIKE '%%scanning%%' THEN 'pages'
            ELSE 'tuples'
       END AS unit
FROM pg_stat_progress_create_index
WHERE pid = %(pid)s
