-- GROUP BY in an order that differs from the index: 17 reorders the keys to match it.
-- Use with --set enable_hashagg=off; otherwise both versions hash, and are equally fast on equal data.
SELECT k3, k2, k1, count(*) FROM t_grp GROUP BY k3, k2, k1;
