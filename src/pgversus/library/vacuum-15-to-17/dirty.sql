-- A share of the rows is updated once, so that as many dead ones are left behind: some of each hundred rows, or all of
-- the first ones.
UPDATE pgbench_accounts SET abalance = abalance + 1
WHERE CASE :'rows'
    WHEN 'spread' THEN aid % 100 < :dead
    ELSE aid <= :dead * 1000 * (SELECT count(*) FROM pgbench_branches)
END;
