\set first random(1, 90000 * :scale)
SELECT sum(abalance) FROM pgbench_accounts WHERE aid BETWEEN :first AND :first + 999;
