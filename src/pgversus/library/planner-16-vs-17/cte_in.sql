-- A sorted materialized CTE: 17 knows its order and uses a merge join, 16 sorts and hashes.
WITH cte1 AS MATERIALIZED (SELECT id FROM t_cte_b ORDER BY id)
SELECT count(*) FROM t_cte_a WHERE id IN (SELECT id FROM cte1 ORDER BY id);
