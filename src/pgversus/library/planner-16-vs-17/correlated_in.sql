-- A correlated IN: 17 turns the subquery into a join, 16 runs it for each row.
SELECT count(*) FROM t_corr_c c WHERE c1 IN (SELECT c1 FROM t_corr_d d WHERE c.c2 = d.c2);
