-- A web shop: 20 tables, two of them partitioned by month. All rows follow from their numbers, so that every server holds
-- the same ones. Some 100 MB.
CREATE FUNCTION pick(number bigint, salt int, choices int) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    -- A whole number from 0 to choices - 1 that looks random. One expression, so that it is inlined.
    SELECT ((((number * 1597334677 + salt::bigint * 668265263) % 4294967296
              # ((number * 1597334677 + salt::bigint * 668265263) % 4294967296 >> 13))
             * 1664525 % 4294967296 * choices) >> 32)::int
$$;
CREATE FUNCTION mostly_small(number bigint, salt int, choices int) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    -- The same, with small numbers more often: a few customers place most orders.
    SELECT (pick(number, salt, choices)::bigint * pick(number, salt + 1, choices) / choices)::int
$$;

CREATE TABLE country (
    code char(2) PRIMARY KEY,
    name text NOT NULL
);
INSERT INTO country
SELECT chr(65 + g / 5) || chr(65 + g % 5 * 3), 'Country ' || g FROM generate_series(0, 49) AS g;

CREATE TABLE customer (
    id int PRIMARY KEY,
    email text NOT NULL UNIQUE,
    name text NOT NULL,
    country char(2) NOT NULL REFERENCES country,
    segment text NOT NULL,
    created_at timestamp NOT NULL,
    settings jsonb NOT NULL
);
INSERT INTO customer
SELECT g, 'customer' || g || '@example.com', 'Customer ' || g,
       (SELECT code FROM country ORDER BY code OFFSET mostly_small(g, 1, 50) LIMIT 1),
       (ARRAY['private', 'private', 'private', 'business', 'reseller'])[1 + pick(g, 3, 5)],
       timestamp '2023-01-01' + pick(g, 4, 1000) * interval '1 day',
       jsonb_build_object('newsletter', pick(g, 5, 3) = 0, 'language', (ARRAY['en', 'de', 'ja', 'fr'])[1 + pick(g, 6, 4)])
FROM generate_series(1, 20000) AS g;
CREATE INDEX customer_country ON customer (country, created_at);

CREATE TABLE address (
    id int PRIMARY KEY,
    customer_id int NOT NULL REFERENCES customer,
    kind text NOT NULL,
    city text NOT NULL,
    postcode text NOT NULL
);
INSERT INTO address
SELECT g, 1 + pick(g, 7, 20000), CASE pick(g, 8, 3) WHEN 0 THEN 'billing' ELSE 'delivery' END,
       'City ' || pick(g, 9, 500), lpad(pick(g, 10, 100000)::text, 5, '0')
FROM generate_series(1, 30000) AS g;
CREATE INDEX address_customer ON address (customer_id);

CREATE TABLE category (
    id int PRIMARY KEY,
    parent_id int REFERENCES category,
    name text NOT NULL
);
INSERT INTO category
SELECT g, CASE WHEN g > 8 THEN 1 + (g - 1) / 8 END, 'Category ' || g FROM generate_series(1, 400) AS g;

CREATE TABLE supplier (
    id int PRIMARY KEY,
    name text NOT NULL,
    country char(2) NOT NULL REFERENCES country
);
INSERT INTO supplier
SELECT g, 'Supplier ' || g, (SELECT code FROM country ORDER BY code OFFSET pick(g, 11, 50) LIMIT 1)
FROM generate_series(1, 300) AS g;

CREATE TABLE product (
    id int PRIMARY KEY,
    supplier_id int NOT NULL REFERENCES supplier,
    sku text NOT NULL UNIQUE,
    name text NOT NULL,
    price numeric(10, 2) NOT NULL,
    is_active boolean NOT NULL,
    attributes jsonb NOT NULL,
    description text NOT NULL,
    words tsvector GENERATED ALWAYS AS (to_tsvector('english', name || ' ' || description)) STORED
);
INSERT INTO product (id, supplier_id, sku, name, price, is_active, attributes, description)
SELECT g, 1 + pick(g, 12, 300), 'SKU-' || lpad(g::text, 6, '0'),
       (ARRAY['Oak', 'Steel', 'Glass', 'Linen', 'Paper'])[1 + pick(g, 13, 5)] || ' '
       || (ARRAY['table', 'lamp', 'chair', 'shelf', 'bowl', 'clock'])[1 + pick(g, 14, 6)] || ' ' || g,
       (1 + pick(g, 15, 50000) / 100.0)::numeric(10, 2), pick(g, 16, 10) > 0,
       jsonb_build_object('color', (ARRAY['red', 'green', 'blue', 'black'])[1 + pick(g, 17, 4)], 'weight', pick(g, 18, 9000),
                          'tags', jsonb_build_array('tag' || pick(g, 19, 40), 'tag' || pick(g, 20, 40))),
       'A ' || (ARRAY['small', 'large', 'light', 'heavy', 'round'])[1 + pick(g, 21, 5)] || ' and '
       || (ARRAY['cheap', 'elegant', 'modern', 'plain', 'rare'])[1 + pick(g, 22, 5)] || ' thing for the '
       || (ARRAY['kitchen', 'garden', 'office', 'hall', 'workshop'])[1 + pick(g, 23, 5)]
FROM generate_series(1, 10000) AS g;
CREATE INDEX product_supplier ON product (supplier_id);
CREATE INDEX product_words ON product USING gin (words);
CREATE INDEX product_attributes ON product USING gin (attributes jsonb_path_ops);

CREATE TABLE product_category (
    product_id int NOT NULL REFERENCES product,
    category_id int NOT NULL REFERENCES category,
    PRIMARY KEY (product_id, category_id)
);
INSERT INTO product_category
SELECT DISTINCT 1 + pick(g, 24, 10000), 1 + mostly_small(g, 25, 400) FROM generate_series(1, 25000) AS g;
CREATE INDEX product_category_category ON product_category (category_id);

CREATE TABLE price_history (
    product_id int NOT NULL REFERENCES product,
    valid_from date NOT NULL,
    price numeric(10, 2) NOT NULL,
    PRIMARY KEY (product_id, valid_from)
);
INSERT INTO price_history
SELECT p, date '2023-01-01' + month * 30, (1 + pick(p * 37 + month, 27, 50000) / 100.0)::numeric(10, 2)
FROM generate_series(1, 10000) AS p, generate_series(0, 9) AS month;

CREATE TABLE warehouse (
    id int PRIMARY KEY,
    name text NOT NULL,
    country char(2) NOT NULL REFERENCES country
);
INSERT INTO warehouse
SELECT g, 'Warehouse ' || g, (SELECT code FROM country ORDER BY code OFFSET g LIMIT 1) FROM generate_series(1, 12) AS g;

CREATE TABLE stock (
    warehouse_id int NOT NULL REFERENCES warehouse,
    product_id int NOT NULL REFERENCES product,
    quantity int NOT NULL,
    reserved int NOT NULL,
    PRIMARY KEY (warehouse_id, product_id)
);
INSERT INTO stock
SELECT w, p, pick(p * 12 + w, 28, 200), pick(p * 12 + w, 29, 10)
FROM generate_series(1, 12) AS w, generate_series(1, 10000) AS p;

CREATE TABLE coupon (
    code text PRIMARY KEY,
    percent int NOT NULL,
    valid_until date NOT NULL
);
INSERT INTO coupon
SELECT 'SAVE' || g, 5 + pick(g, 30, 4) * 5, date '2024-01-01' + pick(g, 31, 700) FROM generate_series(1, 200) AS g;

CREATE TABLE orders (
    id int NOT NULL,
    customer_id int NOT NULL REFERENCES customer,
    status text NOT NULL,
    coupon_code text REFERENCES coupon,
    placed_at timestamp NOT NULL,
    total numeric(12, 2) NOT NULL,
    PRIMARY KEY (id, placed_at)
) PARTITION BY RANGE (placed_at);
SELECT format('CREATE TABLE orders_%s PARTITION OF orders FOR VALUES FROM (%L) TO (%L)',
              to_char(month, 'YYYY_MM'), month, month + interval '1 month')
FROM generate_series(timestamp '2024-01-01', timestamp '2025-12-01', interval '1 month') AS month \gexec
INSERT INTO orders
SELECT g, 1 + mostly_small(g, 32, 20000),
       (ARRAY['paid', 'paid', 'shipped', 'shipped', 'shipped', 'shipped', 'returned', 'cancelled'])[1 + pick(g, 34, 8)],
       CASE WHEN pick(g, 35, 5) = 0 THEN 'SAVE' || (1 + pick(g, 36, 200)) END,
       timestamp '2024-01-01' + g * interval '6 minutes', (5 + pick(g, 37, 100000) / 100.0)::numeric(12, 2)
FROM generate_series(1, 120000) AS g;
CREATE INDEX orders_customer ON orders (customer_id, placed_at);
CREATE INDEX orders_status ON orders (status, placed_at);

CREATE TABLE order_line (
    order_id int NOT NULL,
    line int NOT NULL,
    product_id int NOT NULL REFERENCES product,
    quantity int NOT NULL,
    price numeric(10, 2) NOT NULL,
    PRIMARY KEY (order_id, line)
);
INSERT INTO order_line
SELECT o, line, 1 + mostly_small(o * 5 + line, 38, 10000), 1 + pick(o * 5 + line, 40, 4),
       (1 + pick(o * 5 + line, 41, 50000) / 100.0)::numeric(10, 2)
FROM generate_series(1, 120000) AS o, generate_series(1, 1 + pick(o, 42, 4)) AS line;
CREATE INDEX order_line_product ON order_line (product_id);

CREATE TABLE payment (
    id int PRIMARY KEY,
    order_id int NOT NULL,
    method text NOT NULL,
    amount numeric(12, 2) NOT NULL,
    failed boolean NOT NULL
);
INSERT INTO payment
SELECT g, g, (ARRAY['card', 'card', 'transfer', 'invoice'])[1 + pick(g, 43, 4)],
       (5 + pick(g, 37, 100000) / 100.0)::numeric(12, 2), pick(g, 44, 50) = 0
FROM generate_series(1, 110000) AS g;
CREATE INDEX payment_order ON payment (order_id);

CREATE TABLE shipment (
    id int PRIMARY KEY,
    order_id int NOT NULL,
    warehouse_id int NOT NULL REFERENCES warehouse,
    carrier text NOT NULL,
    shipped_at timestamp NOT NULL,
    delivered_at timestamp
);
INSERT INTO shipment
SELECT g, g, 1 + pick(g, 45, 12), (ARRAY['north', 'south', 'express'])[1 + pick(g, 46, 3)],
       timestamp '2024-01-02' + g * interval '6 minutes',
       CASE WHEN pick(g, 47, 20) > 0 THEN timestamp '2024-01-04' + g * interval '6 minutes' END
FROM generate_series(1, 90000) AS g;
CREATE INDEX shipment_order ON shipment (order_id);
CREATE INDEX shipment_open ON shipment (warehouse_id) WHERE delivered_at IS NULL;

CREATE TABLE review (
    id int PRIMARY KEY,
    product_id int NOT NULL REFERENCES product,
    customer_id int NOT NULL REFERENCES customer,
    stars int NOT NULL,
    written_at timestamp NOT NULL
);
INSERT INTO review
SELECT g, 1 + mostly_small(g, 48, 10000), 1 + pick(g, 50, 20000), 1 + pick(g, 51, 5),
       timestamp '2024-01-01' + g * interval '15 minutes'
FROM generate_series(1, 50000) AS g;
CREATE INDEX review_product ON review (product_id, written_at);
CREATE INDEX review_customer ON review (customer_id);

CREATE TABLE cart (
    id int PRIMARY KEY,
    customer_id int NOT NULL UNIQUE REFERENCES customer,
    updated_at timestamp NOT NULL
);
INSERT INTO cart
SELECT g, g, timestamp '2025-11-01' + pick(g, 52, 40000) * interval '1 minute' FROM generate_series(1, 5000) AS g;

CREATE TABLE cart_item (
    cart_id int NOT NULL REFERENCES cart,
    product_id int NOT NULL REFERENCES product,
    quantity int NOT NULL,
    PRIMARY KEY (cart_id, product_id)
);
INSERT INTO cart_item
SELECT DISTINCT ON (1, 2) 1 + pick(g, 53, 5000), 1 + pick(g, 54, 10000), 1 + pick(g, 55, 3)
FROM generate_series(1, 15000) AS g;

CREATE TABLE event (
    id bigint NOT NULL,
    session_id int NOT NULL,
    customer_id int,
    kind text NOT NULL,
    happened_at timestamp NOT NULL,
    payload jsonb NOT NULL
) PARTITION BY RANGE (happened_at);
SELECT format('CREATE TABLE event_%s PARTITION OF event FOR VALUES FROM (%L) TO (%L)',
              to_char(month, 'YYYY_MM'), month, month + interval '1 month')
FROM generate_series(timestamp '2025-07-01', timestamp '2025-12-01', interval '1 month') AS month \gexec
INSERT INTO event
SELECT g, 1 + pick(g, 56, 40000), CASE WHEN pick(g, 57, 3) > 0 THEN 1 + mostly_small(g, 58, 20000) END,
       (ARRAY['view', 'view', 'view', 'search', 'cart', 'order'])[1 + pick(g, 60, 6)],
       timestamp '2025-07-01' + g * interval '75 seconds',
       jsonb_build_object('product', 1 + mostly_small(g, 61, 10000), 'ms', pick(g, 63, 2000), 'mobile', pick(g, 64, 2) = 0)
FROM generate_series(1, 200000) AS g;
CREATE INDEX event_kind ON event (kind, happened_at);
CREATE INDEX event_session ON event (session_id);

CREATE TABLE session (
    id int PRIMARY KEY,
    customer_id int REFERENCES customer,
    began_at timestamp NOT NULL,
    agent text NOT NULL
);
INSERT INTO session
SELECT g, CASE WHEN pick(g, 65, 2) = 0 THEN 1 + pick(g, 66, 20000) END,
       timestamp '2025-07-01' + g * interval '6 minutes', 'agent/' || pick(g, 67, 30)
FROM generate_series(1, 40000) AS g;
CREATE INDEX session_agent ON session (agent, began_at);
