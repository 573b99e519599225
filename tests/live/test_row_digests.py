"""Written rows are compared by their values if these depend on the data alone, otherwise by their number."""

from collections.abc import Iterator

import psycopg
import pytest

from pgversus.postgres.row_digests import rows_digest
from pgversus.postgres.session import Connection, connect
from pgversus.records.plans import UncertaintyKind
from tests.live.conftest import own_server

TABLES = """
CREATE TABLE account (id int PRIMARY KEY, amount int NOT NULL, day date DEFAULT 'infinity');
INSERT INTO account (id, amount) SELECT i, i % 7 FROM generate_series(1, 100) AS i;
CREATE TABLE change (id int PRIMARY KEY, account int NOT NULL, amount int NOT NULL);
INSERT INTO change SELECT i, i % 50 + 1, i FROM generate_series(1, 100) AS i;
CREATE TABLE large (id int PRIMARY KEY, amount int NOT NULL);
INSERT INTO large SELECT i, i FROM generate_series(1, 10000) AS i;
CREATE VIEW hours AS SELECT id, now() AS hour FROM change;
CREATE TABLE history (id serial, at timestamptz DEFAULT now(), amount int);
CREATE TABLE part (id int, note text) PARTITION BY RANGE (id);
CREATE TABLE part_low PARTITION OF part FOR VALUES FROM (0) TO (10);
CREATE TABLE stamped (id int, note text) PARTITION BY RANGE (id);
CREATE TABLE stamped_low PARTITION OF stamped FOR VALUES FROM (0) TO (10);
CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN NEW.note := clock_timestamp(); RETURN NEW; END $$;
CREATE TRIGGER stamp BEFORE INSERT OR UPDATE ON stamped_low FOR EACH ROW EXECUTE FUNCTION stamp();
CREATE TABLE ruled (id int);
CREATE RULE nothing AS ON INSERT TO ruled DO INSTEAD NOTHING;
ANALYZE;
"""

# Hash joins read the smaller table first.
SETTINGS = {"autovacuum": "off", "enable_nestloop": "off", "enable_mergejoin": "off"}


@pytest.fixture(scope="module", params=["12.22", "17.8"])
def connection(request: pytest.FixtureRequest) -> Iterator[Connection]:
    with own_server(request.param, SETTINGS) as server:
        server.start()
        with connect(server.target) as connected:
            connected.execute(TABLES)
            yield connected


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("UPDATE account SET amount = amount + 1 WHERE id <= 10 -- all of it", 10),
        ("DELETE FROM account WHERE amount = 0", 14),
        ("INSERT INTO account (id, amount) SELECT id + 1000, amount FROM account", 100),
        ("INSERT INTO account (id, amount) VALUES (1000, 5)", 1),
        ("WITH low AS (SELECT 7 AS most) DELETE FROM account USING low WHERE account.id < low.most", 6),
        ("UPDATE large SET amount = 0 FROM change WHERE change.id = large.id RETURNING large.id", 100),
        ('UPDATE large AS "Of ""change""" SET amount = 0 FROM hours WHERE hours.id = "Of ""change""".id', 100),
        ("INSERT INTO part VALUES (1, 'a'), (2, 'b')", 2),
    ],
)
def test_values_that_depend_on_the_data_alone_are_hashed(connection: Connection, statement: str, rows: int) -> None:
    first, second = rows_digest(connection, statement), rows_digest(connection, statement)
    assert first is not None
    assert first.digest is not None
    assert (first.rows, first.uncertainties) == (rows, ())
    assert first == second


def test_other_values_have_another_hash(connection: Connection) -> None:
    one = rows_digest(connection, "UPDATE account SET amount = 1 WHERE id = 5")
    other = rows_digest(connection, "UPDATE account SET amount = 2 WHERE id = 5")
    assert one is not None
    assert other is not None
    assert one.rows == other.rows == 1
    assert None is not one.digest != other.digest is not None


@pytest.mark.parametrize(
    ("statement", "rows", "why"),
    [
        ("INSERT INTO history (amount) VALUES (1), (2)", 2, {UncertaintyKind.VOLATILE, UncertaintyKind.CLOCK}),
        # Two changes belong to each account.
        ("UPDATE account SET amount = change.amount FROM change WHERE change.account = account.id", 50, set()),
        ("INSERT INTO stamped VALUES (1, 'a'), (2, 'b')", 2, set()),
        (
            "INSERT INTO account VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET amount = 5, day = now()",
            1,
            {UncertaintyKind.CLOCK},
        ),
        ("WITH gone AS (DELETE FROM account WHERE id < 4 RETURNING id) SELECT count(*) FROM gone", 1, set()),
        ("WITH gone AS (DELETE FROM change) UPDATE account SET amount = 0 WHERE id < 4", 3, set()),
    ],
)
def test_other_rows_are_compared_by_number(
    connection: Connection, statement: str, rows: int, why: set[UncertaintyKind]
) -> None:
    found = rows_digest(connection, statement)
    assert found is not None
    assert (found.rows, found.digest) == (rows, None)
    assert {one.kind for one in found.uncertainties} == why


def test_the_number_of_rows_is_compared_after_a_merge(connection: Connection) -> None:
    statement = "MERGE INTO account USING change ON change.id = account.id WHEN MATCHED THEN DELETE"
    if connection.info.server_version < 150000:
        with pytest.raises(psycopg.errors.SyntaxError):
            rows_digest(connection, statement)
        return
    found = rows_digest(connection, statement)
    assert found is not None
    assert (found.rows, found.digest, found.uncertainties) == (100, None, ())


def test_nothing_that_a_statement_writes_remains(connection: Connection) -> None:
    for statement in ("DELETE FROM change", "WITH gone AS (DELETE FROM account RETURNING 1) SELECT * FROM gone"):
        assert rows_digest(connection, statement) is not None
    counts = "SELECT (SELECT count(*) FROM change), (SELECT count(*) FROM account)"
    assert connection.execute(counts).fetchone() == (100, 100)


def test_a_statement_that_a_rule_replaces_has_no_rows(connection: Connection) -> None:
    assert rows_digest(connection, "INSERT INTO ruled VALUES (1)") is None
