-- A sort of the whole of pgbench_accounts, in memory or spilling to disk depending on work_mem.
SELECT DISTINCT bid, aid FROM pgbench_accounts ORDER BY bid, aid LIMIT 10000;
