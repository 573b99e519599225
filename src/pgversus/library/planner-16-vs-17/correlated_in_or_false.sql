-- The same count. Neither version turns a subquery below OR into a join, and the planner removes OR false only later, so
-- 17 runs the subquery for each row, as 16 does.
SELECT count(*) FROM t_corr_c c WHERE c1 IN (SELECT c1 FROM t_corr_d d WHERE c.c2 = d.c2) OR false;
