-- Two tables with the same 100,000 rows for cte_in.sql.
CREATE TABLE t_cte_a (id int PRIMARY KEY, v text);
CREATE TABLE t_cte_b (id int PRIMARY KEY, v text);
INSERT INTO t_cte_a SELECT g, md5(g::text) FROM generate_series(1, 100000) AS g;
INSERT INTO t_cte_b SELECT * FROM t_cte_a;
