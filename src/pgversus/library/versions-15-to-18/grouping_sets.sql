-- One group for each branch, and one of all.
SELECT bid, sum(abalance) AS s FROM pgbench_accounts GROUP BY GROUPING SETS ((bid), ()) HAVING sum(abalance) > 100000;
