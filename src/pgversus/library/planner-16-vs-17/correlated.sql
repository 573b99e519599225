-- Two tables of 10,000 rows for correlated_in.sql.
CREATE TABLE t_corr_c (id int PRIMARY KEY, c1 int, c2 int);
CREATE TABLE t_corr_d (id int PRIMARY KEY, c1 int, c2 int);
INSERT INTO t_corr_c SELECT g, g % 100, g % 2 FROM generate_series(1, 10000) AS g;
INSERT INTO t_corr_d SELECT g, g % 100, g % 2 FROM generate_series(1, 10000) AS g;
