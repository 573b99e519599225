-- A sort of the whole of pgbench_accounts that is kept in memory or spills, as work_mem allows.
SELECT DISTINCT bid, aid FROM pgbench_accounts ORDER BY bid, aid LIMIT 10000;
