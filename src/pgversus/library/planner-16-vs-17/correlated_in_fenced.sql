-- The same count: OFFSET 0 changes nothing but that 17 cannot turn the subquery into a join, as 16 never does.
SELECT count(*) FROM t_corr_c c WHERE c1 IN (SELECT c1 FROM t_corr_d d WHERE c.c2 = d.c2 OFFSET 0);
