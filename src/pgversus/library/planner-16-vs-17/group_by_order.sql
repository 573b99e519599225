-- GROUP BY in another order than the index has: 17 reorders the keys to fit it.
-- With --set enable_hashagg=off; otherwise both versions hash and are equally fast on equal data.
SELECT k3, k2, k1, count(*) FROM t_grp GROUP BY k3, k2, k1;
