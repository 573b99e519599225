-- As many groups as rows: the hash table spills, or it does not.
SELECT aid, bid, max(abalance) FROM pgbench_accounts GROUP BY aid, bid;
