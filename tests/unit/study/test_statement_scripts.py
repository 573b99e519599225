import pytest

from pgversus.statements.collection import Collection
from pgversus.statements.statement import RecordedStatement, Sample
from pgversus.study.statement_scripts import pgbench_text, script_of, with_literals_instead
from pgversus.study.workload import PreparedStatement, QueryMode


def statement(text: str, *values: str | None) -> RecordedStatement:
    collection = Collection()
    collection.add_execution(Sample(text=text, values=values, seconds=0.1), has_values=True)
    (found,) = collection.statements
    return found


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("SELECT a::int, '12:30', b[1:n] FROM t", "SELECT a::int,  E'12\\x3A30', b[1: n] FROM t"),
        ("SELECT ':scale', 'it''s :x', ' : '", "SELECT  E'\\x3Ascale',  E'it''s \\x3Ax', ' : '"),
        ("SELECT E'\\n:a', $$ :b $$, \"c:d\"", "SELECT E'\\n\\x3Aa',  E' \\x3Ab ',  U&\"c\\003Ad\""),
        ('SELECT t."a\\b:c", "d"', 'SELECT t. U&"a\\\\b\\003Ac", "d"'),
        ("SELECT U&'\\0061:b', N'c:d', n", "SELECT U&'\\0061\\003Ab',  E'c\\x3Ad', n"),
        ("SELECT 'a:€'", "SELECT  E'a\\x3A€'"),
        ("SELECT 1 -- :a\n, 2 /* :b */", "SELECT 1  \n, 2  "),
        ("SELECT f(a := 1, b => ':')", "SELECT f(a := 1, b => ':')"),
        ("SELECT '\\:a'", "SELECT  E'\\\\\\x3Aa'"),
    ],
)
def test_pgbench_finds_no_variables_in_a_statement(sql: str, text: str) -> None:
    assert pgbench_text(sql) == text


def test_a_statement_is_executed_with_the_values_of_its_median_execution() -> None:
    collection = Collection()
    for value, seconds in (("1", 0.1), ("2", 0.2), ("3", 0.3)):
        collection.add_execution(
            Sample(text="SELECT * FROM t WHERE a = $1;", values=(value,), seconds=seconds), has_values=True
        )
    (statement,) = collection.statements
    script = script_of(statement, "x", QueryMode.SIMPLE)
    assert (script.name, script.text) == ("x.sql", "SELECT * FROM t WHERE a = '2';\n")


def test_a_statement_that_writes_is_rolled_back() -> None:
    script = script_of(statement("DELETE FROM t"), "x", QueryMode.SIMPLE)
    assert script.text == "BEGIN;\nDELETE FROM t;\nROLLBACK;\n"
    assert script.is_rolled_back
    assert not script.is_one_statement


def test_a_statement_with_parameters_is_prepared_once_in_each_session() -> None:
    text = "SELECT * FROM t WHERE a = $1 AND b::text = $2 AND (c = $3 OR $1 IS NULL); -- of the shop"
    script = script_of(statement(text, "7", "a:b\\'c", None), "x", QueryMode.PREPARED)
    assert script.text == (
        "\\if :pgversus_new\n"
        "PREPARE pgversus_statement AS"
        " SELECT * FROM t WHERE a = $1 AND b::text = $2 AND (c = $3 OR $1 IS NULL);\n"
        "\\set pgversus_new 0\n"
        "\\endif\n"
        "EXECUTE pgversus_statement ('7',  E'a\\x3Ab\\\\''c', NULL);\n"
    )
    assert script.prepared == PreparedStatement(text=text.partition(";")[0], values=("7", "a:b\\'c", None))
    assert script.is_one_statement
    assert not script.is_rolled_back
    plain = with_literals_instead(script)
    assert plain.prepared is None
    assert plain.text == (
        "SELECT * FROM t WHERE a = '7' AND b::text =  E'a\\x3Ab\\\\''c' AND (c = NULL OR '7' IS NULL);\n"
    )


def test_strings_that_look_like_comments_are_prepared_as_they_are() -> None:
    text = "SELECT * FROM t WHERE a = $1 /* one */ AND b IN ('x--y', 'a/*b*/c')"
    script = script_of(statement(text, "7"), "x", QueryMode.PREPARED)
    assert script.prepared is not None
    assert script.prepared.text == "SELECT * FROM t WHERE a = $1   AND b IN ('x--y', 'a/*b*/c')"


def test_a_statement_with_a_secret_is_not_prepared() -> None:
    script = script_of(statement("SELECT * FROM t WHERE password = $1", "hunter2"), "x", QueryMode.PREPARED)
    assert script.prepared is None


def test_a_prepared_statement_that_writes_is_rolled_back() -> None:
    script = script_of(statement("DELETE FROM t WHERE a = $1", "7"), "x", QueryMode.PREPARED)
    assert (script.text or "").endswith("\\endif\nBEGIN;\nEXECUTE pgversus_statement ('7');\nROLLBACK;\n")
    assert script.is_rolled_back
    assert not script.is_one_statement
    assert with_literals_instead(script).text == "BEGIN;\nDELETE FROM t WHERE a = '7';\nROLLBACK;\n"


@pytest.mark.parametrize("mode", [QueryMode.SIMPLE, QueryMode.EXTENDED])
def test_query_modes_other_than_prepared_have_the_values_in_the_text(mode: QueryMode) -> None:
    script = script_of(statement("SELECT * FROM t WHERE a = $1", "7"), "x", mode)
    assert (script.text, script.prepared) == ("SELECT * FROM t WHERE a = '7';\n", None)
