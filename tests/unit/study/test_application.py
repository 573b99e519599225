import pytest

from pgversus.errors import StudyError
from pgversus.statements.collection import Collection
from pgversus.statements.statement import RecordedStatement, Sample
from pgversus.study.application import confirmation_study, contexts_of, pgbench_text, script_text
from pgversus.study.comparison import expand_arms
from pgversus.study.dataset import Dataset
from pgversus.study.design import Design
from pgversus.study.servers import parse_server
from pgversus.study.study import Context, Study, StudyKind
from pgversus.study.workload import PgbenchWorkload, QueryMode


def study_of_contexts(contexts: tuple[Context, ...]) -> Study:
    return Study(
        name="check", title="", question="", contexts=contexts, seed=1, budget_s=60.0, kind=StudyKind.UPGRADE_CHECK
    )


def statements(*texts: str) -> list[RecordedStatement]:
    collection = Collection()
    for number, text in enumerate(texts):
        collection.add_counters(text, calls=10, seconds=100.0 - number, rows=None)
    return collection.statements


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("SELECT a::int, '12:30', b[1:n] FROM t", "SELECT a::int,  E'12\\x3A30', b[1: n] FROM t"),
        ("SELECT ':scale', 'it''s :x', ' : '", "SELECT  E'\\x3Ascale',  E'it''s \\x3Ax', ' : '"),
        ("SELECT E'\\n:a', $$ :b $$, \"c:d\"", "SELECT E'\\n\\x3Aa',  E' \\x3Ab ', \"c:d\""),
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
    assert script_text(statement) == "SELECT * FROM t WHERE a = '2';\n"


def test_a_statement_that_writes_is_rolled_back() -> None:
    (statement,) = statements("DELETE FROM t")
    assert script_text(statement) == "BEGIN;\nDELETE FROM t;\nROLLBACK;\n"


def test_each_statement_is_a_context_or_left_out() -> None:
    load = PgbenchWorkload(scripts=(), query_mode=QueryMode.PREPARED)
    servers = [(name, parse_server(name)) for name in ("16.12", "17.8")]
    arms, factors = expand_arms(servers, [], workload=load, dataset=Dataset(pgbench_scale=1))
    found = statements("SELECT * FROM app.orders", "COMMIT", "SELECT 1", "UPDATE users SET a = 1")
    contexts, known = contexts_of(found, load, arms, factors=factors, design=Design())
    assert [one.label for one in contexts] == ["statement=1-app.orders", "statement=3", "statement=4-users"]
    assert [one.context for one in known] == [1, None, 2, 3]
    assert [bool(one.obstacle) for one in known] == [False, True, False, False]
    for one in contexts:
        (workload,) = {arm.workload for arm in one.comparison.arms}
        assert isinstance(workload, PgbenchWorkload)
        assert workload.query_mode is QueryMode.PREPARED
        assert one.comparison.design.stopping_rule.looks_once
    again = confirmation_study(study_of_contexts(contexts), [3, 1])
    assert [(one.number, one.label) for one in again.contexts] == [
        (1, "statement=4-users"),
        (2, "statement=1-app.orders"),
    ]
    assert not again.contexts[0].comparison.design.stopping_rule.looks_once


def test_without_any_statement_to_execute_there_is_no_study() -> None:
    load = PgbenchWorkload(scripts=())
    with pytest.raises(StudyError) as caught:
        contexts_of(statements("COMMIT", "SELECT $1"), load, (), factors=("server",), design=Design())
    assert caught.value.slug == "study-no-statement"
    assert "no values" in caught.value.found


def test_the_smallest_statements_are_left_out_beyond_the_coverage() -> None:
    load = PgbenchWorkload(scripts=())
    servers = [(name, parse_server(name)) for name in ("16.12", "17.8")]
    arms, factors = expand_arms(servers, [], workload=load, dataset=Dataset(pgbench_scale=1))
    found = statements("SELECT 1", "SELECT a FROM t", "SELECT b FROM t")
    _, known = contexts_of(found, load, arms, factors=factors, design=Design(), coverage=0.6)
    assert [one.context for one in known] == [1, 2, None]
    assert known[2].obstacle
