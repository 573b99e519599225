-- As many groups as rows: the hash table spills or not, depending on memory.
SELECT aid, bid, max(abalance) FROM pgbench_accounts GROUP BY aid, bid;
