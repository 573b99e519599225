-- Data for statements.sql: 1.4 million rows, 190 MB with indexes. Nothing is random, so all servers hold the same.

CREATE TABLE item (
    id int PRIMARY KEY,
    grp int NOT NULL,
    kind text NOT NULL,
    price numeric(10, 2) NOT NULL,
    quantity int NOT NULL,
    tags int[] NOT NULL,
    data jsonb NOT NULL,
    added timestamp NOT NULL,
    note text NOT NULL
);
INSERT INTO item
SELECT i, i * 37 % 500, 'kind ' || i * 7919 % 211, (i * 31 % 10000) / 100.0, i % 97, ARRAY[i % 10, i % 11, i % 12],
    jsonb_build_object('size', i % 40, 'color', 'c' || i % 17, 'weight', i % 1000),
    timestamp '2024-01-01' + i * interval '1 minute', repeat(md5(i::text), 3)
FROM generate_series(1, 200000) AS i;
CREATE INDEX ON item (grp, kind);
CREATE INDEX ON item (added);

CREATE TABLE event (
    id bigint PRIMARY KEY,
    item_id int NOT NULL,
    at timestamp NOT NULL,
    code int NOT NULL,
    amount int NOT NULL
);
INSERT INTO event
SELECT i, i::bigint * 48271 % 200000 + 1, timestamp '2024-01-01' + i * interval '20 seconds', i % 7, i * 13 % 1000
FROM generate_series(1, 1000000) AS i;
CREATE INDEX ON event (item_id, at);
CREATE INDEX ON event (code, amount);
CREATE INDEX ON event (at);

CREATE TABLE account (id int PRIMARY KEY, ref int NOT NULL UNIQUE, owner text NOT NULL, balance int);
INSERT INTO account
SELECT i, i * 7 % 50021, CASE WHEN i % 20000 = 0 THEN repeat('x', 1200) ELSE 'owner ' || i % 900 END, i % 5000
FROM generate_series(1, 50000) AS i;

CREATE TABLE reading (region int NOT NULL, day date NOT NULL, value int NOT NULL);
INSERT INTO reading
SELECT i % 5, date '2020-01-01' + i / 100, i % 331
FROM generate_series(1, 150000) AS i;
CREATE INDEX ON reading (region, day);

CREATE TABLE metric (day date NOT NULL, host int NOT NULL, value int NOT NULL) PARTITION BY RANGE (day);
DO $$
DECLARE
    day date;
BEGIN
    FOR day IN SELECT date '2024-01-01' + i FROM generate_series(0, 39) AS i LOOP
        EXECUTE format('CREATE TABLE metric_%s PARTITION OF metric FOR VALUES FROM (%L) TO (%L)',
            to_char(day, 'YYYYMMDD'), day, day + 1);
    END LOOP;
END $$;
INSERT INTO metric
SELECT date '2024-01-01' + i % 40, i % 50, i % 1009 FROM generate_series(1, 40000) AS i;
CREATE INDEX ON metric (host, day);
