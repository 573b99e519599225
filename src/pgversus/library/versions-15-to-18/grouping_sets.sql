-- One group per branch, and one over all rows.
SELECT bid, sum(abalance) AS s FROM pgbench_accounts GROUP BY GROUPING SETS ((bid), ()) HAVING sum(abalance) > 100000;
