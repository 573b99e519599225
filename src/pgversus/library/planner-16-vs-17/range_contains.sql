-- A constant range that contains a column: 17 turns it into two comparisons that can use the index.
SELECT count(*) FROM t_range WHERE tsrange('-Infinity', '2023-06-15'::timestamp, '()') @> ts;
