-- One row of words per ten accounts, with the same words on every server.
CREATE TABLE texts AS
SELECT g AS id, array_to_string(ARRAY(SELECT md5((g * k % 9973)::text) FROM generate_series(1, 20) AS k), ' ')::text AS text
FROM generate_series(1, (SELECT count(*) / 10 FROM pgbench_accounts)) AS g;
ALTER TABLE texts ADD COLUMN words tsvector;
UPDATE texts SET words = to_tsvector('simple', text);
VACUUM (FULL, ANALYZE) texts;
