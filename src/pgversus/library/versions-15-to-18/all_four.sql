-- The four statements in one transaction script, as published.
SELECT DISTINCT bid, aid FROM pgbench_accounts ORDER BY bid, aid LIMIT 10000;
(SELECT aid FROM pgbench_accounts WHERE bid BETWEEN 1 AND 100 ORDER BY aid)
UNION ALL
(SELECT aid FROM pgbench_accounts WHERE bid BETWEEN 101 AND 200 ORDER BY aid)
ORDER BY aid;
SELECT aid, bid, max(abalance) FROM pgbench_accounts GROUP BY aid, bid;
SELECT bid, sum(abalance) AS s FROM pgbench_accounts GROUP BY GROUPING SETS ((bid), ()) HAVING sum(abalance) > 100000;
