-- The same count. A subquery beneath OR is no join to either version, and only afterwards does OR false go away: 17 then
-- runs it for each row, as 16 does.
SELECT count(*) FROM t_corr_c c WHERE c1 IN (SELECT c1 FROM t_corr_d d WHERE c.c2 = d.c2) OR false;
