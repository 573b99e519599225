"""Scripts of pgbench and psql as sources of statements."""

import pytest

from pgversus.statements.client_scripts import typical_values, with_parameters, without_commands
from pgversus.statements.collection import Collection
from pgversus.statements.sources import read_sql
from pgversus.statements.statement import NO_VALUES

TRANSFER = """\\set from random(1, 100000 * \\
  :scale)
\\set to random(1, 10)
-- name: transfer
BEGIN;
UPDATE accounts SET balance = balance - 1 WHERE id = :from AND note <> ':from';
SELECT balance FROM accounts
  WHERE id = :from AND created::date > :since AND bounds[1:2] = :bounds \\gset old_
\\if :old_balance < 0
INSERT INTO log VALUES (:to, :from, ':to');
\\endif
END;
"""


def test_statements_of_a_pgbench_script_have_parameters() -> None:
    collection = Collection()
    read_sql("transfer.sql", TRANSFER, "transfer", collection)
    found = {one.name: one for one in collection.statements}
    assert {name: (" ".join(one.text.split()), one.parameters) for name, one in found.items()} == {
        "transfer 1": ("BEGIN", 0),
        "transfer 2": ("UPDATE accounts SET balance = balance - 1 WHERE id = $1 AND note <> ':from'", 1),
        "transfer 3": (
            "SELECT balance FROM accounts WHERE id = $1 AND created::date > $2 AND bounds[1:2] = $3",
            3,
        ),
        "transfer 4": ("INSERT INTO log VALUES ($1, $2, ':to')", 2),
        "transfer 5": ("END", 0),
    }
    # The value of :since is unknown.
    values = {name: [sample.values for sample in one.samples] for name, one in found.items() if one.parameters}
    assert values == {"transfer 2": [("50000",)], "transfer 3": [], "transfer 4": [("5", "50000")]}
    assert found["transfer 3"].obstacle == NO_VALUES


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("SELECT :a + :b - :a", "SELECT $1 + $2 - $1"),
        ("SELECT $1, :a", "SELECT $1, :a"),
        ("SELECT ':a', \":b\" -- :c\n, 1::int, x[1:2], x[:a]", "SELECT ':a', \":b\" -- :c\n, 1::int, x[1:2], x[$1]"),
    ],
)
def test_variables_become_parameters_outside_quotes(statement: str, found: str) -> None:
    assert with_parameters(statement)[0] == found


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("7", "7"),
        ("-(:scale + 2) * 10 / 4 % 5", "2"),
        ("random_zipfian(1, 100 * :scale, 1.5)", "50"),
        ("random(1, :unknown)", None),
        ("1 / 0", None),
        ("permute(3, 10)", None),
        ("'text'", None),
        ("(" * 100 + "1" + ")" * 100, "1"),
        ("(" * 400 + "1" + ")" * 400, None),
        ("1 +", None),
        ("2 ** 9", None),
        ("1" + " + 1" * 500, None),
    ],
)
def test_the_value_of_a_variable_is_the_middle_of_its_range(expression: str, value: str | None) -> None:
    assert typical_values(f"\\set found {expression}\nSELECT :found;").get("found") == value


def test_commands_are_omitted_outside_quotes() -> None:
    text = "\\timing on\nSELECT '\n\\set a 1\n';\n  \\sleep 10 ms\nSELECT 1 \\gset\nSELECT 2;\\echo done\n"
    assert without_commands(text) == "SELECT '\n\\set a 1\n';\nSELECT 1 ;\nSELECT 2;"
