SELECT count(*) FROM pgbench_accounts WHERE abalance <> 0;
