-- 100,000 rows with an index on (k1, k2, k3) for group_by_order.sql.
CREATE TABLE t_grp (id int, k1 int, k2 int, k3 int, k4 int);
INSERT INTO t_grp
SELECT g, g % 10, (g / 10) % 10, (g / 100) % 10, (g / 1000) % 10 FROM generate_series(1, 100000) AS g;
CREATE INDEX ON t_grp (k1, k2, k3);
