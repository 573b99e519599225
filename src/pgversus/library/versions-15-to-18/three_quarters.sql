-- With this many rows and the default work_mem, GROUP BY uses five batches on 15 and one on 18, as in the published plans.
DELETE FROM pgbench_accounts WHERE aid > 75000;
