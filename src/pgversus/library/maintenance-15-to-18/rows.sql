-- The file is in the data directory, so it becomes part of the snapshot.
COPY (SELECT g, g % 1000, md5(g::text) FROM generate_series(1, :rows) AS g) TO PROGRAM 'cat > rows.csv';
CREATE TABLE copied (id int, part int, word text);
