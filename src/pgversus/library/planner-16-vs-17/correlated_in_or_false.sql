-- The same count. Neither version turns a subquery under OR into a join, and OR false is removed later: 17 then runs the
-- subquery for each row, as 16 does.
SELECT count(*) FROM t_corr_c c WHERE c1 IN (SELECT c1 FROM t_corr_d d WHERE c.c2 = d.c2) OR false;
