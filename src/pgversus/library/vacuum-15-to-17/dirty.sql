-- Update a share of the rows once, which leaves the same number of dead rows: spread over every hundred rows, or all at
-- the beginning of the table.
UPDATE pgbench_accounts SET abalance = abalance + 1
WHERE CASE :'rows'
    WHEN 'spread' THEN aid % 100 < :dead
    ELSE aid <= :dead * 1000 * (SELECT count(*) FROM pgbench_branches)
END;
