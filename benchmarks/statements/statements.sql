-- Statements whose plans or speed the release notes of 15 to 18 say something about, and common ones beside them.
-- Each comment names the item of the release notes, or why a statement might become slower.

-- 16: ORDER BY and DISTINCT aggregates can use sorted input.
-- name: distinct count by group
SELECT grp, count(DISTINCT kind) FROM item GROUP BY grp ORDER BY grp;

-- 16: the same, with an index in the order of the aggregate.
-- name: ordered aggregate
SELECT item_id, string_agg(code::text, ',' ORDER BY at) FROM event WHERE item_id <= 12000 GROUP BY item_id
ORDER BY item_id;

-- 16: one sort of all rows by group and text replaces many small ones.
-- name: ordered texts by group
SELECT quantity, array_agg(note ORDER BY note) FROM item WHERE id <= 60000 GROUP BY quantity ORDER BY quantity;

-- 16: incremental sort for SELECT DISTINCT.
-- name: distinct with a limit
SELECT DISTINCT item_id, code FROM event ORDER BY item_id, code LIMIT 200;

-- 16: hash joins with the smaller table inside for anti joins.
-- name: rows without events
SELECT count(*) FROM account AS a WHERE NOT EXISTS (SELECT FROM event AS e WHERE e.item_id = a.id AND e.code = 6);

-- 16: parallel full joins by hash.
-- name: full join
SELECT count(*), count(a.id), count(r.value)
FROM account AS a FULL JOIN (SELECT DISTINCT value, region FROM reading) AS r ON r.value = a.id;

-- 16: window functions that need no frame.
-- name: ranks
SELECT sum(place), sum(number) FROM (
    SELECT rank() OVER (ORDER BY id) AS place, row_number() OVER (ORDER BY id) AS number FROM item
) AS ranked;

-- 16: a condition on ntile() ends the window early.
-- name: first of a hundred parts
SELECT id, part FROM (SELECT id, ntile(100) OVER (ORDER BY id) AS part FROM item) AS parts WHERE part <= 1 ORDER BY id;

-- 17: tests for NULL of columns that are NOT NULL are removed.
-- name: impossible null
SELECT count(*) FROM event WHERE amount IS NULL;

-- 17: UNION by merging sorted inputs.
-- name: union with a limit
SELECT id FROM item UNION SELECT id FROM account ORDER BY id LIMIT 50;

-- 17: statistics of columns of a CTE.
-- name: in a materialized list
WITH chosen AS MATERIALIZED (SELECT DISTINCT grp FROM item WHERE quantity < 3)
SELECT count(*) FROM item AS i WHERE i.grp IN (SELECT grp FROM chosen) AND i.price < 50;

-- 17: a correlated IN becomes a join.
-- name: correlated in
SELECT count(*) FROM account AS a
WHERE a.balance IN (SELECT e.amount FROM event AS e WHERE e.item_id = a.id);

-- 17: the same, where the estimate of the outer rows is far too high: a join of all rows replaces a few lookups.
-- name: correlated in for few rows
SELECT count(*) FROM account AS a
WHERE length(a.owner) > 1000 AND a.balance IN (SELECT e.amount + 0 FROM event AS e WHERE e.item_id = a.id);

-- 17: GROUP BY keys in the order of ORDER BY or of an index.
-- name: group by an index in other order
SELECT kind, grp, count(*) FROM item GROUP BY kind, grp ORDER BY grp, kind;

-- 17: containment in a constant range becomes a comparison, which can use an index.
-- name: contained in a range
SELECT count(*) FROM event WHERE at <@ tsrange('2024-03-01', '2024-03-02');

-- 17: a scan with many values of a B-tree index descends less.
-- name: many neighboring keys
SELECT sum(amount) FROM event WHERE id = ANY (ARRAY(SELECT generate_series(500001::bigint, 500800)));

-- 17: ordered results from an index scan with lists.
-- name: two lists
SELECT code, amount FROM event WHERE code = ANY ('{1, 3, 5}') AND amount = ANY ('{10, 20, 30, 40, 50}')
ORDER BY code, amount LIMIT 20;

-- 18: self joins on a unique column are removed.
-- name: self join
SELECT sum(b.balance) FROM account AS a JOIN account AS b ON a.id = b.id WHERE a.ref < 40000;

-- 18: OR of equalities becomes a list.
-- name: list of ors
SELECT count(*), sum(amount) FROM event
WHERE item_id = 11 OR item_id = 222 OR item_id = 3333 OR item_id = 4444 OR item_id = 55555 OR item_id = 66666
    OR item_id = 77777 OR item_id = 88888 OR item_id = 99999 OR item_id = 111111 OR item_id = 122222;

-- 18: DISTINCT keys in the order of an index.
-- name: distinct in other order
SELECT DISTINCT amount, code FROM event ORDER BY code, amount LIMIT 500;

-- 18: skip scan of a B-tree index without its first column.
-- name: second column of an index
SELECT count(*), sum(value) FROM reading WHERE day = '2021-06-01';

-- 18: INTERSECT and EXCEPT use less memory and fewer steps.
-- name: intersect
SELECT count(*) FROM (SELECT grp, quantity FROM item INTERSECT SELECT region, value FROM reading) AS both_have;

-- 18: hash semi joins with the smaller table inside.
-- name: exists with a big inner table
SELECT count(*) FROM account AS a WHERE a.balance < 4000 AND EXISTS (SELECT FROM event AS e WHERE e.item_id = a.ref);

-- 18: faster multiplication of numeric.
-- name: numeric products
SELECT sum(price * price * 1.0725), avg(price / 3) FROM item;

-- name: row by primary key
SELECT id, kind, price FROM item WHERE id = 4711;

-- name: last events of an item
SELECT id, at, code FROM event WHERE item_id = 815 ORDER BY at DESC LIMIT 10;

-- name: join and group
SELECT i.grp, sum(e.amount) FROM item AS i JOIN event AS e ON e.item_id = i.id
WHERE e.at < '2024-01-15' GROUP BY i.grp ORDER BY i.grp;

-- name: attributes in jsonb
SELECT data->>'color' AS color, sum((data->>'weight')::int) FROM item GROUP BY 1 ORDER BY 1;

-- name: partitions of a week
SELECT host, sum(value) FROM metric WHERE day BETWEEN '2024-01-10' AND '2024-01-16' AND host < 10
GROUP BY host ORDER BY host;

-- name: update of an indexed column
UPDATE event SET amount = amount + 1 WHERE id BETWEEN 400001 AND 400500;
