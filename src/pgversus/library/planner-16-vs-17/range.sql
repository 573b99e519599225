-- The 10,000 hours before 2024-08-02, with an index, for range_contains.sql.
CREATE TABLE t_range (id int, ts timestamp);
INSERT INTO t_range SELECT g, timestamp '2024-08-02' - g * interval '1 hour' FROM generate_series(1, 10000) AS g;
CREATE INDEX ON t_range (ts);
