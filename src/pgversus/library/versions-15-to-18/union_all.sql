-- Two sorted halves of the table, concatenated and sorted again.
(SELECT aid FROM pgbench_accounts WHERE bid BETWEEN 1 AND 100 ORDER BY aid)
UNION ALL
(SELECT aid FROM pgbench_accounts WHERE bid BETWEEN 101 AND 200 ORDER BY aid)
ORDER BY aid;
