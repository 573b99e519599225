-- The statements of the shop. Each set of values is one way in which the application executes the statement above it.

-- name: login
-- values: $1 = 'customer42@example.com'
SELECT id, name, settings FROM customer WHERE email = $1;

-- name: orders of a customer
-- values: $1 = '7'
-- values: $1 = '4711'
SELECT id, status, total, placed_at FROM orders WHERE customer_id = $1 ORDER BY placed_at DESC LIMIT 20;

-- name: lines of an order
-- values: $1 = '77777'
SELECT l.line, p.name, l.quantity, l.price
FROM order_line AS l JOIN product AS p ON p.id = l.product_id
WHERE l.order_id = $1 ORDER BY l.line;

-- name: product by sku
-- values: $1 = 'SKU-000815'
SELECT id, name, price, attributes FROM product WHERE sku = $1;

-- name: products page by key
-- values: $1 = 'Glass lamp 10', $2 = '0'
SELECT id, name, price FROM product WHERE is_active AND (name, id) > ($1, $2) ORDER BY name, id LIMIT 25;

-- name: products page by offset
-- values: $1 = '0'
-- values: $1 = '5000'
SELECT id, name, price FROM product WHERE is_active ORDER BY price DESC, id LIMIT 25 OFFSET $1;

-- name: products of a category
-- values: $1 = '3'
-- values: $1 = '390'
SELECT p.id, p.name, p.price
FROM product AS p JOIN product_category AS c ON c.product_id = p.id
WHERE c.category_id = $1 AND p.is_active ORDER BY p.price, p.id;

-- name: category tree
-- values: $1 = '2'
WITH RECURSIVE tree AS (
    SELECT id, name, 0 AS depth FROM category WHERE id = $1
    UNION ALL
    SELECT c.id, c.name, t.depth + 1 FROM category AS c JOIN tree AS t ON c.parent_id = t.id
)
SELECT id, name, depth FROM tree ORDER BY depth, id;

-- name: full text search
-- values: $1 = 'elegant lamp'
-- values: $1 = 'kitchen'
SELECT id, name FROM product WHERE words @@ websearch_to_tsquery('english', $1)
ORDER BY ts_rank(words, websearch_to_tsquery('english', $1)) DESC, id LIMIT 20;

-- name: full text count
-- values: $1 = 'modern or rare'
SELECT count(*) FROM product WHERE words @@ websearch_to_tsquery('english', $1);

-- name: products by attribute
-- values: $1 = '{"color": "red", "tags": ["tag7"]}'
SELECT id, name FROM product WHERE attributes @> $1::jsonb ORDER BY id;

-- name: colors
SELECT attributes ->> 'color' AS color, count(*), round(avg(price), 2) FROM product GROUP BY 1 ORDER BY 1;

-- name: tags
SELECT tag, count(*) FROM product, jsonb_array_elements_text(attributes -> 'tags') AS tag GROUP BY tag ORDER BY 2 DESC, 1;

-- name: products in a list
-- values: $1 = '17', $2 = '170', $3 = '1700', $4 = '1701', $5 = '5', $6 = '9999', $7 = '4242', $8 = '815'
SELECT id, name, price FROM product WHERE id IN ($1, $2, $3, $4, $5, $6, $7, $8) ORDER BY id;

-- name: stock in lists
-- values: $1 = '{2,3,5,7,11}', $2 = '{10,200,3000,3001,3002,4000,5000,6000,7000,8000,9000,9999}'
SELECT warehouse_id, product_id, quantity - reserved AS available FROM stock
WHERE warehouse_id = ANY ($1::int[]) AND product_id = ANY ($2::int[]) ORDER BY 1, 2;

-- name: products by alternatives
SELECT id, name FROM product WHERE id = 12 OR id = 1200 OR id = 3400 OR id = 5600 OR id = 7800 OR id = 9900 ORDER BY id;

-- name: reviews by alternatives
-- values: $1 = '35', $2 = '1200'
SELECT id, stars FROM review WHERE product_id = $1 OR customer_id = $2 ORDER BY id;

-- name: products by values
SELECT id, name FROM product WHERE id IN (VALUES (5), (50), (500), (5000), (6000), (7000)) ORDER BY id;

-- name: carts with a product
-- values: $1 = '100'
SELECT c.id, c.updated_at FROM cart AS c
WHERE EXISTS (SELECT FROM cart_item AS i WHERE i.cart_id = c.id AND i.product_id < $1) ORDER BY c.updated_at, c.id;

-- name: products never ordered
SELECT p.id, p.name FROM product AS p
WHERE NOT EXISTS (SELECT FROM order_line AS l WHERE l.product_id = p.id) ORDER BY p.id;

-- name: customers without orders
SELECT count(*) FROM customer WHERE id NOT IN (SELECT customer_id FROM orders);

-- name: customers without a review
-- values: $1 = 'reseller'
SELECT c.id FROM customer AS c LEFT JOIN review AS r ON r.customer_id = c.id
WHERE c.segment = $1 AND r.id IS NULL ORDER BY c.id;

-- name: prices seen before
SELECT count(*) FROM product AS p
WHERE p.price IN (SELECT h.price FROM price_history AS h WHERE h.product_id = p.id);

-- name: orders with a large line
-- values: $1 = '2024-06-01', $2 = '2024-06-08'
SELECT o.id, o.total FROM orders AS o
WHERE o.placed_at >= $1 AND o.placed_at < $2
  AND 3 IN (SELECT l.quantity FROM order_line AS l WHERE l.order_id = o.id) ORDER BY o.id;

-- name: latest order of each customer
SELECT DISTINCT ON (customer_id) customer_id, id, placed_at, status FROM orders
WHERE placed_at >= '2025-01-01' ORDER BY customer_id, placed_at DESC;

-- name: current prices
-- values: $1 = '2023-08-01'
SELECT p.id, current.price FROM product AS p,
    LATERAL (SELECT h.price FROM price_history AS h
             WHERE h.product_id = p.id AND h.valid_from <= $1 ORDER BY h.valid_from DESC LIMIT 1) AS current
WHERE p.supplier_id < 30 ORDER BY p.id;

-- name: last price by window
SELECT product_id, price FROM (
    SELECT product_id, price, row_number() OVER (PARTITION BY product_id ORDER BY valid_from DESC) AS place FROM price_history
) AS ranked WHERE place = 1 ORDER BY product_id;

-- name: running total
-- values: $1 = '500'
SELECT id, placed_at, sum(total) OVER (PARTITION BY customer_id ORDER BY placed_at) FROM orders
WHERE customer_id < $1 ORDER BY customer_id, placed_at;

-- name: numbered orders
SELECT max(place) FROM (SELECT row_number() OVER (ORDER BY placed_at) AS place FROM orders WHERE status = 'shipped') AS numbered;

-- name: best products of each category
SELECT category_id, product_id, price FROM (
    SELECT c.category_id, c.product_id, p.price, rank() OVER (PARTITION BY c.category_id ORDER BY p.price DESC) AS place
    FROM product_category AS c JOIN product AS p ON p.id = c.product_id
) AS ranked WHERE place <= 3 ORDER BY category_id, price DESC, product_id;

-- name: revenue of each month
SELECT date_trunc('month', placed_at) AS month, count(*), sum(total) FROM orders
WHERE status <> 'cancelled' GROUP BY 1 ORDER BY 1;

-- name: revenue by country and segment
SELECT c.country, c.segment, sum(o.total) FROM orders AS o JOIN customer AS c ON c.id = o.customer_id
WHERE o.placed_at >= '2024-07-01' AND o.placed_at < '2025-01-01' GROUP BY c.country, c.segment ORDER BY c.segment, c.country;

-- name: revenue by grouping sets
SELECT c.country, o.status, sum(o.total) FROM orders AS o JOIN customer AS c ON c.id = o.customer_id
GROUP BY GROUPING SETS ((c.country), (o.status), ()) ORDER BY 1, 2;

-- name: distinct states
SELECT DISTINCT status, coupon_code FROM orders ORDER BY status, coupon_code;

-- name: distinct carriers of warehouses
SELECT DISTINCT warehouse_id, carrier FROM shipment ORDER BY warehouse_id, carrier;

-- name: customers who bought or wrote
SELECT customer_id FROM orders WHERE placed_at >= '2025-03-01' UNION SELECT customer_id FROM review ORDER BY customer_id;

-- name: products without sales by set
SELECT id FROM product EXCEPT SELECT product_id FROM order_line ORDER BY id;

-- name: products with sales and reviews
SELECT product_id FROM order_line INTERSECT SELECT product_id FROM review ORDER BY product_id;

-- name: events of an hour
-- values: $1 = '2025-10-10 10:00', $2 = '2025-10-10 11:00'
SELECT kind, count(*) FROM event WHERE happened_at >= $1 AND happened_at < $2 GROUP BY kind ORDER BY kind;

-- name: sessions of a minute
-- values: $1 = '2025-09-01 12:00'
SELECT id, agent FROM session WHERE began_at = $1 ORDER BY id;

-- name: product names of suppliers
SELECT s.id, array_agg(p.name ORDER BY p.name) FROM supplier AS s JOIN product AS p ON p.supplier_id = s.id
WHERE s.id < 150 GROUP BY s.id ORDER BY s.id;

-- name: order history as text
-- values: $1 = '300'
SELECT customer_id, string_agg(status, ',' ORDER BY placed_at) FROM orders WHERE customer_id < $1 GROUP BY customer_id
ORDER BY customer_id;

-- name: customers of each status
SELECT status, count(DISTINCT customer_id) FROM orders GROUP BY status ORDER BY status;

-- name: stock against sales
SELECT count(*) FILTER (WHERE s.product_id IS NULL), count(*) FILTER (WHERE l.product_id IS NULL), count(*)
FROM (SELECT product_id, sum(quantity) AS quantity FROM stock GROUP BY 1) AS s
FULL JOIN (SELECT product_id, sum(quantity) AS quantity FROM order_line GROUP BY 1) AS l USING (product_id);

-- name: heavy products by self join
-- values: $1 = '450'
SELECT a.id, a.name FROM product AS a JOIN product AS b ON a.id = b.id WHERE b.price > $1 ORDER BY a.id;

-- name: orders with a customer
-- values: $1 = 'returned'
SELECT count(*) FROM orders WHERE customer_id IS NOT NULL AND status = $1;

-- name: large customers by cte
WITH spent AS MATERIALIZED (SELECT customer_id, sum(total) AS total FROM orders GROUP BY customer_id)
SELECT c.id, c.name, s.total FROM customer AS c JOIN spent AS s ON s.customer_id = c.id
WHERE s.total > 20000 ORDER BY s.total DESC, c.id LIMIT 50;

-- name: orders of each customer by name
SELECT c.id, c.email, c.name, count(*) FROM customer AS c JOIN orders AS o ON o.customer_id = c.id
WHERE c.id <= 2000 GROUP BY c.id, c.email, c.name ORDER BY c.id;

-- name: first and last order
SELECT min(placed_at), max(placed_at) FROM orders WHERE status = 'returned';

-- name: open shipments of a warehouse
-- values: $1 = '4'
SELECT count(*), min(shipped_at) FROM shipment WHERE warehouse_id = $1 AND delivered_at IS NULL;

-- name: best customers of a country
-- values: $1 = 'AA'
SELECT c.id, c.name, sum(o.total) AS total FROM customer AS c JOIN orders AS o ON o.customer_id = c.id
WHERE c.country = $1 GROUP BY c.id ORDER BY total DESC, c.id LIMIT 10;

-- name: order search
-- values: $1 = 'paid', $2 = NULL
-- values: $1 = NULL, $2 = '99'
SELECT id, customer_id, total FROM orders
WHERE ($1::text IS NULL OR status = $1) AND ($2::int IS NULL OR customer_id = $2) ORDER BY placed_at DESC, id LIMIT 50;

-- name: response times by kind
-- values: $1 = '2025-09-01', $2 = '2025-10-01'
SELECT kind, round(avg((payload ->> 'ms')::int), 1) FROM event WHERE happened_at >= $1 AND happened_at < $2
GROUP BY kind ORDER BY kind;

-- name: failed payments of a month
-- values: $1 = '2024-03-01', $2 = '2024-04-01'
SELECT o.id, p.method, p.amount FROM orders AS o JOIN payment AS p ON p.order_id = o.id
WHERE o.placed_at >= $1 AND o.placed_at < $2 AND p.failed ORDER BY o.id;

-- name: orders of each day
-- values: $1 = '2024-05-01', $2 = '2024-05-31'
SELECT day::date, count(o.id) FROM generate_series($1::timestamp, $2::timestamp, interval '1 day') AS day
LEFT JOIN orders AS o ON o.placed_at >= day AND o.placed_at < day + interval '1 day' GROUP BY day ORDER BY day;

-- name: newest reviews of products
-- values: $1 = '{11,111,1111,2222,3333}'
SELECT wanted.id, r.stars, r.written_at FROM unnest($1::int[]) AS wanted (id)
CROSS JOIN LATERAL (SELECT stars, written_at FROM review WHERE product_id = wanted.id ORDER BY written_at DESC LIMIT 2) AS r
ORDER BY 1, 3 DESC;

-- name: put into cart
-- values: $1 = '77', $2 = '1234', $3 = '2'
INSERT INTO cart_item (cart_id, product_id, quantity) VALUES ($1, $2, $3)
ON CONFLICT (cart_id, product_id) DO UPDATE SET quantity = cart_item.quantity + excluded.quantity;

-- name: reserve stock
-- values: $1 = '1', $2 = '3', $3 = '4321'
UPDATE stock SET reserved = reserved + $1 WHERE warehouse_id = $2 AND product_id = $3;

-- name: record an event
-- values: $1 = '1000001', $2 = '99', $3 = 'view', $4 = '2025-12-24 10:00', $5 = '{"product": 7, "ms": 12}'
INSERT INTO event (id, session_id, customer_id, kind, happened_at, payload) VALUES ($1, $2, NULL, $3, $4, $5::jsonb);

-- name: empty a cart
-- values: $1 = '123'
DELETE FROM cart_item WHERE cart_id = $1;

-- name: raise prices of a supplier
-- values: $1 = '1.02', $2 = '33'
UPDATE product SET price = round(price * $1, 2) WHERE supplier_id = $2;

-- name: touch carts
-- values: $1 = '50'
MERGE INTO cart AS c USING (SELECT id FROM customer WHERE id <= $1) AS n ON c.customer_id = n.id
WHEN MATCHED THEN UPDATE SET updated_at = '2025-12-01'
WHEN NOT MATCHED THEN INSERT (id, customer_id, updated_at) VALUES (n.id, n.id, '2025-12-01');
