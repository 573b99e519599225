"""Scripts of pgbench and psql as sources of statements."""

import pytest

from pgversus.statements.client_scripts import typical_values, with_parameters, with_typical_values, without_commands
from pgversus.statements.collection import Collection
from pgversus.statements.sources import read_sql
from pgversus.statements.statement import NO_VALUES

TRANSFER = r"""\shell echo don't stop
\set from random(1, 100000 * \
  :scale)
\set to random(1, 10)
-- name: transfer
BEGIN \;
UPDATE accounts SET balance = balance - 1 WHERE id = :from AND note <> 'to_:to, 12:30';
SELECT balance FROM accounts
  WHERE id = :from AND created::date > :since AND bounds[1:2] = :bounds \gset old_
\if :old_balance < 0
INSERT INTO log VALUES (:to + :from);
SELECT * FROM log WHERE text = 'to_:to';
\endif
END;
"""


def test_statements_of_a_pgbench_script_have_parameters_and_typical_values() -> None:
    collection = Collection()
    read_sql("transfer.sql", TRANSFER, "transfer", collection)
    found = {one.name: one for one in collection.statements}
    assert {name: (" ".join(one.text.split()), one.obstacle) for name, one in found.items()} == {
        "transfer 1": ("BEGIN", "not a SELECT, INSERT, UPDATE, DELETE or MERGE"),
        "transfer 2": ("UPDATE accounts SET balance = balance - 1 WHERE id = $1 AND note <> 'to_:to, 12:30'", ""),
        "transfer 3": (
            "SELECT balance FROM accounts WHERE id = $1 AND created::date > $2 AND bounds[1:2] = $3",
            NO_VALUES,
        ),
        "transfer 4": ("INSERT INTO log VALUES ($1 + $2)", ""),
        "transfer 5": ("SELECT * FROM log WHERE text = 'to_5'", ""),
        "transfer 6": ("END", "not a SELECT, INSERT, UPDATE, DELETE or MERGE"),
    }
    executed = {name: [" ".join(sample.text.split()) for sample in one.samples] for name, one in found.items()}
    assert executed["transfer 2"] == [
        "UPDATE accounts SET balance = balance - 1 WHERE id = 50000 AND note <> 'to_5, 12:30'"
    ]
    # Other numbers than those of a script would have other types.
    assert executed["transfer 4"] == ["INSERT INTO log VALUES (5 + 50000)"]


def test_values_in_a_file_take_precedence_over_variables() -> None:
    collection = Collection()
    read_sql("q.sql", "\\set a 5\n-- values: $1 = '7'\nSELECT * FROM t WHERE a = :a;", "q", collection)
    (found,) = collection.statements
    assert [(one.text, one.values) for one in found.samples] == [("SELECT * FROM t WHERE a = $1", ("7",))]


def test_a_file_of_sql_has_no_variables_in_its_strings() -> None:
    assert with_typical_values("SELECT 'a:scale'", typical_values("SELECT 'a:scale';"), in_strings=True) == (
        "SELECT 'a:scale'"
    )
    collection = Collection()
    read_sql("of_psql.sql", "\\timing on\n\\set a 5\nSELECT ':a' FROM t WHERE a = :a;", "q", collection)
    (found,) = collection.statements
    assert [sample.text for sample in found.samples] == ["SELECT ':a' FROM t WHERE a = 5"]


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("SELECT :a + :b - :a", "SELECT $1 + $2 - $1"),
        ("SELECT $1, :a", "SELECT $1, :a"),
        ("SELECT ':a', \":b\" -- :c\n, 1::int, x[1:2], x[:a]", "SELECT ':a', \":b\" -- :c\n, 1::int, x[1:2], x[$1]"),
    ],
)
def test_variables_become_parameters_outside_quotes(statement: str, found: str) -> None:
    assert with_parameters(statement) == found


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("7", "7"),
        ("-(:scale + 2) * 10 / 4", "-7"),
        ("-7 % 4", "-3"),
        ("random_zipfian(1, 100 * :scale, 1.5)", "50"),
        (":before + 1", "4"),
        ("random(1, :unknown)", None),
        ("1 / 0", None),
        ("permute(3, 10)", None),
        ("5 # 3", None),
        ("'text'", None),
        ("(" * 100 + "1" + ")" * 100, "1"),
        ("(" * 400 + "1" + ")" * 400, None),
        ("1 +", None),
        ("2 ** 9", None),
        ("1" + " + 1" * 500, None),
        ("9" * 900, None),
        (" * ".join(["9999999999"] * 80), None),
    ],
)
def test_the_value_of_a_variable_is_the_middle_of_its_range(expression: str, value: str | None) -> None:
    script = f"\\set before 2\n\\set before :before + 1\n\\set found {expression}\nSELECT :found;"
    assert typical_values(script).get("found") == value


def test_commands_are_omitted_with_their_quotes() -> None:
    text = (
        "\\timing on\n\\echo it's 'so\n\\pset null '(null)'\nSELECT '\n\\set a 1\n' \\x;\n  \\sleep 10 ms\n"
        "SELECT 1 \\gset\nSELECT 2;\\echo done\nSELECT 3 \\; SELECT 4\n  \\gset one\nSELECT 5\n\\g\n"
    )
    assert (
        without_commands(text)
        == "SELECT '\n\\set a 1\n' \\x;\nSELECT 1 ;\nSELECT 2;SELECT 3 ; SELECT 4\n  ;\nSELECT 5\n;\n"
    )
