-- Statements for a second table, in a single check: they were written after the rules that classify statements.

-- 16: DISTINCT and ORDER BY in one aggregate use sorted input.
-- name: distinct texts in order
SELECT grp, string_agg(DISTINCT kind, ',' ORDER BY kind) FROM item WHERE id <= 80000 GROUP BY grp ORDER BY grp;

-- 17: a correlated IN becomes a join, also where a few rows suffice.
-- name: first rows of a correlated in
SELECT a.id FROM account AS a
WHERE a.balance IN (SELECT e.amount FROM event AS e WHERE e.item_id = a.id) LIMIT 3;

-- 17: tests for NULL of columns that are NOT NULL are removed.
-- name: needless tests for null
SELECT count(*) FROM event WHERE code IS NOT NULL AND amount IS NOT NULL AND item_id IS NOT NULL AND amount < 500;

-- 17: lists as conditions of an index.
-- name: long list of keys
SELECT count(*), sum(quantity) FROM item WHERE id = ANY (ARRAY(SELECT i * 97 FROM generate_series(1, 2000) AS i));

-- 18: IN (VALUES ...) becomes a list.
-- name: in values
SELECT count(*), sum(e.amount) FROM event AS e
WHERE e.item_id IN (VALUES (17), (170), (1700), (17000), (170000), (18), (180), (1800), (18000), (180000));

-- 18: GROUP BY omits columns that a unique index determines.
-- name: group by a unique column
SELECT ref, owner, balance, count(*) FROM account GROUP BY ref, owner, balance ORDER BY ref LIMIT 5 OFFSET 49000;

-- 18: conditions of HAVING are tested before the rows are grouped.
-- name: having on grouping sets
SELECT code, amount, count(*) FROM event GROUP BY GROUPING SETS ((code, amount), (code)) HAVING code = 3;

-- 18: skip scan, if the first column of the index has many values.
-- name: second column of a wide index
SELECT count(*) FROM event WHERE at = '2024-02-02 02:02:00' OR (amount = 999 AND code > 4);

-- 18: escaping in JSON with vector instructions.
-- name: rows as json
SELECT sum(length(row_to_json(i)::text)) FROM item AS i WHERE id <= 50000;

-- name: last event of each of 200 items
SELECT i.id, e.at FROM item AS i
CROSS JOIN LATERAL (SELECT at FROM event WHERE item_id = i.id ORDER BY at DESC LIMIT 1) AS e WHERE i.id <= 200;

-- name: highest prices
SELECT id, price FROM item ORDER BY price DESC, id LIMIT 20;

-- name: search in texts
SELECT count(*) FROM item WHERE note ILIKE '%abcd%';

-- name: chain of rows
WITH RECURSIVE chain AS (
    SELECT id, ref, 1 AS step FROM account WHERE id = 1
    UNION ALL
    SELECT a.id, a.ref, c.step + 1 FROM account AS a JOIN chain AS c ON a.id = c.ref WHERE c.step < 2000
)
SELECT count(*) FROM chain;

-- name: deletion of a range
DELETE FROM event WHERE id BETWEEN 700001 AND 700300;
