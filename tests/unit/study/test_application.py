import json
from dataclasses import asdict, replace

import pytest

from pgversus.errors import StudyError
from pgversus.statements.collection import Collection
from pgversus.statements.statement import NO_VALUES, RecordedStatement, Sample, Suggestion, ValueClass
from pgversus.study.application import (
    FACTOR,
    PLANNING,
    confirmation_study,
    contexts_of,
    prepared_texts,
    queries_in,
    script_in,
    side_effects_study,
    stored_functions,
    stored_values,
    with_literals_in,
    with_queries_rolled_back,
    with_values,
)
from pgversus.study.comparison import Arm, expand_arms
from pgversus.study.dataset import Dataset
from pgversus.study.design import Design
from pgversus.study.servers import parse_server
from pgversus.study.settings import Setting
from pgversus.study.study import Context, Study, StudyKind
from pgversus.study.workload import PgbenchWorkload, QueryMode, Script, loads_of
from pgversus.text.documents import parts_without_secrets
from pgversus.text.redaction import code_without_secrets

PLANNED = f"{FACTOR}={PLANNING}"


def study_of_contexts(contexts: tuple[Context, ...]) -> Study:
    return Study(
        name="check", title="", question="", contexts=contexts, seed=1, budget_s=60.0, kind=StudyKind.UPGRADE_CHECK
    )


def arms_of(load: PgbenchWorkload, *versions: str) -> tuple[tuple[Arm, ...], tuple[str, ...]]:
    """Arms that run this load, and their factors."""
    servers = [(version, parse_server(version)) for version in versions]
    return expand_arms(servers, [], workload=load, dataset=Dataset(pgbench_scale=1))


def statements(*texts: str) -> list[RecordedStatement]:
    collection = Collection()
    for number, text in enumerate(texts):
        collection.add_counters(text, calls=10, seconds=100.0 - number, rows=None)
    return collection.statements


def test_each_statement_is_a_context_or_left_out() -> None:
    load = PgbenchWorkload(scripts=(), query_mode=QueryMode.PREPARED)
    arms, factors = arms_of(load, "16.12", "17.8")
    found = statements("SELECT * FROM app.orders", "COMMIT", "SELECT 1", "UPDATE users SET a = 1")
    contexts, known = contexts_of(found, load, arms, factors=factors, design=Design())
    assert [one.label for one in contexts] == ["statement=1-app.orders", "statement=3", "statement=4-users", PLANNED]
    assert [one.context for one in known] == [1, None, 2, 3, 4]
    assert [bool(one.obstacle) for one in known] == [False, True, False, False, False]
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


def test_a_statement_of_a_prepared_load_is_prepared_unless_its_server_rejects_it() -> None:
    collection = Collection()
    for text in ("SELECT * FROM t WHERE a = $1", "SELECT * FROM u WHERE a = $1"):
        collection.add_execution(Sample(text=text, values=("5",), seconds=0.1), has_values=True)
    load = PgbenchWorkload(scripts=(), query_mode=QueryMode.PREPARED)
    arms, factors = arms_of(load, "16.12", "17.8")
    contexts, _ = contexts_of(collection.statements, load, arms, factors=factors, design=Design())
    study = study_of_contexts(contexts)
    prepared = prepared_texts(study.contexts)
    assert list(prepared.values()) == ["SELECT * FROM t WHERE a = $1", "SELECT * FROM u WHERE a = $1"]
    first, second = (loads_of([one.comparison.workload])[0] for one in study.contexts[:2])
    assert (first.query_mode, first.variables) == (QueryMode.SIMPLE, (("pgversus_new", "1"),))
    assert first.scripts[0].prepared is not None
    found = with_literals_in(study, [list(prepared)[1]])
    assert found.contexts[0] == study.contexts[0]
    (plain,) = loads_of([found.contexts[1].comparison.workload])
    assert (plain.query_mode, plain.variables) == (QueryMode.PREPARED, ())
    assert plain.scripts[0].text == "SELECT * FROM u WHERE a = '5';\n"
    assert plain.scripts[0].name == second.scripts[0].name
    # All are planned with their values, and a load without preparation has no parameters.
    planning = loads_of([study.contexts[2].comparison.workload])[0].scripts[0].text
    assert planning is not None
    assert "WHERE a = ''5''" in planning
    simple = replace(load, query_mode=QueryMode.SIMPLE)
    contexts, _ = contexts_of(collection.statements, simple, arms, factors=factors, design=Design())
    assert prepared_texts(contexts) == {}


def test_only_statements_that_the_application_prepares_are_prepared_if_the_log_decides() -> None:
    collection = Collection()
    for text, is_prepared in (("SELECT a FROM t WHERE a = $1", True), ("SELECT b FROM t WHERE b = $1", False)):
        sample = Sample(text=text, values=("5",), seconds=1.0)
        collection.add_execution(sample, has_values=True, is_prepared=is_prepared)
    unknown = Sample(text="SELECT c FROM t WHERE c = $1", seconds=1.0)
    collection.add_execution(unknown, has_values=False, is_prepared=True)
    load = PgbenchWorkload(scripts=())
    arms, factors = arms_of(load, "16.12", "17.8")
    contexts, known = contexts_of(collection.statements, load, arms, factors=factors, design=Design(), as_recorded=True)
    assert list(prepared_texts(contexts).values()) == ["SELECT a FROM t WHERE a = $1"]
    study = replace(study_of_contexts(contexts), statements=known)
    chosen = {unknown.text: Suggestion(samples=(replace(unknown, values=("7",)),))}
    assert set(prepared_texts(with_values(study, chosen).contexts).values()) == {
        "SELECT a FROM t WHERE a = $1",
        unknown.text,
    }


@pytest.mark.parametrize("mode", [QueryMode.SIMPLE, QueryMode.PREPARED])
def test_a_query_that_may_write_is_rolled_back_also_in_a_resumed_check(mode: QueryMode) -> None:
    collection = Collection()
    for text, seconds in (("SELECT f($1)", 3.0), ("SELECT g($1)", 2.0), ("DELETE FROM t WHERE a = $1", 1.0)):
        collection.add_execution(Sample(text=text, values=("5",), seconds=seconds), has_values=True)
    load = PgbenchWorkload(scripts=(), query_mode=mode)
    arms, factors = arms_of(load, "16.12", "17.8")
    contexts, known = contexts_of(collection.statements, load, arms, factors=factors, design=Design())
    study = replace(study_of_contexts(contexts), statements=known)
    assert set(queries_in(study)) == {1, 2}
    found = with_queries_rolled_back(study, {1: ["f()"]})
    first, second, third = (loads_of([one.comparison.workload])[0].scripts[0] for one in found.contexts[:3])
    assert (first.is_rolled_back, second.is_rolled_back, third.is_rolled_back) == (True, False, True)
    assert first.text is not None
    assert first.text.endswith("('5');\nROLLBACK;\n")
    assert first.text.count("BEGIN;\n") == 1
    assert stored_functions(found.statements) == {1: ("f()",)}
    assert with_queries_rolled_back(study, stored_functions(found.statements)) == found


def test_a_context_has_the_share_of_its_statement_and_no_other_rights() -> None:
    load = PgbenchWorkload(scripts=())
    arms, factors = arms_of(load, "16.12", "17.8")
    found = statements("SELECT * FROM a", "COMMIT", "SELECT * FROM b")
    contexts, _ = contexts_of(found, load, arms, factors=factors, design=Design())
    assert [one.share for one in contexts] == [100 / 198, 98 / 198, 1.0]
    assert all(arm.workload.is_of_application for one in contexts for arm in one.comparison.arms)
    confirmed = confirmation_study(study_of_contexts(contexts), [2])
    assert [one.share for one in confirmed.contexts] == [98 / 198]


def test_an_unknown_share_counts_like_the_mean() -> None:
    load = PgbenchWorkload(scripts=(), query_mode=QueryMode.PREPARED)
    arms, factors = arms_of(load, "16.12", "17.8")
    collection = Collection()
    collection.add_counters("SELECT * FROM a", calls=10, seconds=30.0, rows=None)
    collection.add_counters("SELECT * FROM b", calls=10, seconds=10.0, rows=None)
    collection.add_file("c", "SELECT * FROM c WHERE a = $1", [("5",)])
    contexts, _ = contexts_of(collection.statements, load, arms, factors=factors, design=Design())
    assert {one.levels[0][1]: one.share for one in contexts} == {"1-a": 0.75, "2-b": 0.25, "c": 0.5, PLANNING: 1.0}
    changed = with_literals_in(study_of_contexts(contexts), {f"{FACTOR}=c"})
    assert [one.share for one in changed.contexts] == [one.share for one in contexts]


def test_all_statements_are_planned_in_one_script_without_being_executed() -> None:
    load = PgbenchWorkload(scripts=())
    arms, factors = arms_of(load, "16.12", "17.8")
    found = statements("SELECT '$plan1$:x' FROM t", "COMMIT", "DELETE FROM v")
    contexts, known = contexts_of(found, load, arms, factors=factors, design=Design())
    assert [one.is_planning for one in known] == [False, False, False, True]
    (load,) = loads_of([contexts[-1].comparison.baseline.workload])
    assert load.scripts[0].text == (
        "DO $plan2$\nBEGIN\n"
        "BEGIN EXECUTE  E'EXPLAIN (COSTS OFF) SELECT  E''$plan1$\\\\x3Ax'' FROM t'; "
        "EXCEPTION WHEN OTHERS THEN NULL; END;\n"
        "BEGIN EXECUTE 'EXPLAIN (COSTS OFF) DELETE FROM v'; EXCEPTION WHEN OTHERS THEN NULL; END;\n"
        "END\n$plan2$;\n"
    )


def test_side_effects_are_measured_on_the_target_with_and_without_the_settings() -> None:
    load = PgbenchWorkload(scripts=())
    arms, factors = arms_of(load, "16.12", "17.8", "18.0")
    found = statements("SELECT a FROM t", "SELECT b FROM u", "DELETE FROM v")
    contexts, _ = contexts_of(found, load, arms, factors=factors, design=Design())
    off = Setting(name="enable_x", value="off")
    study = side_effects_study(study_of_contexts(contexts), 2, [off], ["2-u.sql", "3-v.sql"])
    assert [one.label for one in study.contexts] == ["statement=2-u", "statement=3-v"]
    for number, context in enumerate(study.contexts, start=1):
        plain, changed = context.comparison.arms
        assert (context.number, plain.label, changed.label) == (number, "18.0", "18.0 with enable_x = off")
        assert (plain.server, plain.workload) == (changed.server, changed.workload)
        assert (plain.settings, changed.settings) == ((), (off,))
        assert context.comparison.factors == ("enable_x",)
        assert context.comparison.design.stopping_rule.looks_once


def study_with_values(mode: QueryMode = QueryMode.SIMPLE) -> Study:
    """A study of three statements, the first and the last of which need values."""
    load = PgbenchWorkload(scripts=(), query_mode=mode)
    arms, factors = arms_of(load, "16.12", "17.8")
    found = statements("SELECT a FROM t WHERE b = $1", "SELECT b FROM u", "DELETE FROM v WHERE c = $1")
    contexts, known = contexts_of(found, load, arms, factors=factors, design=Design())
    assert [one.needs_values for one in known] == [True, False, True, False]
    return replace(study_of_contexts(contexts), statements=known)


def suggested(text: str, *values: str) -> Suggestion:
    """A suggestion of one value for each class."""
    classes = zip(values, ValueClass, strict=False)
    return Suggestion(samples=tuple(Sample(text=text, values=(one,), value_class=kind) for one, kind in classes))


def test_each_class_of_values_is_a_context() -> None:
    study = study_with_values()
    first, _, last, _ = (one.text for one in study.statements)
    found = with_values(study, {first: suggested(first, "7", "9"), last: suggested(last, "5")})
    assert [one.label for one in found.contexts] == [
        "statement=1-t, common values",
        "statement=1-t, rare values",
        "statement=2-u",
        "statement=3-v, common values",
        PLANNED,
    ]
    scripts = [loads_of([one.comparison.baseline.workload])[0].scripts[0] for one in found.contexts]
    assert scripts[1] == Script(name="1-t, rare values.sql", text="SELECT a FROM t WHERE b = '9';\n")
    assert scripts[3].text == "BEGIN;\nDELETE FROM v WHERE c = '5';\nROLLBACK;\n"
    assert [(one.context, one.seconds, one.values) for one in found.statements] == [
        (1, 50.0, ("7",)),
        (2, 50.0, ("9",)),
        (3, 99.0, ()),
        (4, 98.0, ("5",)),
        (5, 0.0, ()),
    ]
    # With the chosen values.
    assert scripts[4].text is not None
    assert scripts[4].text.count("EXPLAIN") == 4
    assert "DELETE FROM v WHERE c = ''5''" in scripts[4].text
    assert not any(one.needs_values for one in found.statements)
    # A resumed check has the same statements.
    assert with_values(study, stored_values(found.statements)) == found


def test_an_application_that_prepares_its_statements_prepares_them_with_chosen_values() -> None:
    study = study_with_values(QueryMode.PREPARED)
    first, _, last, _ = (one.text for one in study.statements)
    samples = {first: suggested(first, "7", "9"), last: suggested(last, "5")}
    found = with_values(study, samples)
    assert prepared_texts(found.contexts) == {
        "statement=1-t, common values": first,
        "statement=1-t, rare values": first,
        "statement=3-v, common values": last,
    }
    loads = [loads_of([one.comparison.baseline.workload])[0] for one in found.contexts]
    assert [load.query_mode for load in loads] == [QueryMode.SIMPLE] * 2 + [QueryMode.PREPARED] + [
        QueryMode.SIMPLE,
        QueryMode.PREPARED,
    ]
    assert "EXECUTE pgversus_statement ('9')" in (loads[1].scripts[0].text or "")
    assert with_values(study, stored_values(found.statements)) == found


def test_values_of_a_column_that_sounds_secret_are_known_to_a_resumed_check() -> None:
    load = PgbenchWorkload(scripts=())
    arms, factors = arms_of(load, "16.12", "17.8")
    (one,) = found = statements("SELECT * FROM access_tokens WHERE token = $1")
    contexts, known = contexts_of(found, load, arms, factors=factors, design=Design())
    study = replace(study_of_contexts(contexts), statements=known)
    chosen = with_values(study, {one.text: suggested(one.text, "0190-55", "0190-77")})
    stored = parts_without_secrets(
        json.loads(json.dumps([asdict(statement) for statement in chosen.statements])), code_without_secrets
    )
    assert [found["values"] for found in stored[:2]] == [["0190-55"], ["0190-77"]]
    read = [
        replace(was, text=found["text"], values=tuple(found["values"]))
        for was, found in zip(chosen.statements, stored, strict=True)
    ]
    assert read[0].text != one.text
    assert with_values(study, stored_values(read)) == chosen


def test_a_statement_without_suggested_values_is_left_out() -> None:
    study = study_with_values()
    found = with_values(study, {})
    assert [one.obstacle for one in found.statements] == [NO_VALUES, "", NO_VALUES, ""]
    assert [(one.number, one.label) for one in found.contexts] == [(1, "statement=2-u"), (2, PLANNED)]
    # Their generic plans are compared.
    texts = [one.text for one in found.statements if one.obstacle]
    assert [one.text for one in script_in(found.contexts[-1]).planned] == texts
    with pytest.raises(StudyError) as caught:
        with_values(replace(study, statements=study.statements[:1]), {})
    assert caught.value.slug == "study-no-statement"


def test_a_rejected_statement_is_left_out_with_the_servers_message() -> None:
    study = study_with_values()
    first, *_ = (one.text for one in study.statements)
    found = with_values(study, {first: Suggestion(rejection='relation "t" does not exist')})
    assert found.statements[0].obstacle == 'rejected by the server: relation "t" does not exist'
    # It has no generic plan either.
    assert first not in [one.text for one in script_in(found.contexts[-1]).planned]
    assert with_values(study, stored_values(found.statements)) == found


def test_no_values_are_chosen_for_rows_to_insert() -> None:
    load = PgbenchWorkload(scripts=())
    arms, factors = arms_of(load, "16.12", "17.8")
    found = statements("SELECT 1", "INSERT INTO t VALUES ($1)")
    contexts, known = contexts_of(found, load, arms, factors=factors, design=Design())
    assert [one.obstacle for one in known] == ["", NO_VALUES, ""]
    assert [one.name for one in script_in(contexts[-1]).planned] == [known[1].name]


def test_without_any_statement_to_execute_there_is_no_study() -> None:
    load = PgbenchWorkload(scripts=())
    with pytest.raises(StudyError) as caught:
        contexts_of(statements("COMMIT", "INSERT INTO t VALUES ($1)"), load, (), factors=("server",), design=Design())
    assert caught.value.slug == "study-no-statement"
    assert "no values" in caught.value.found


def test_the_smallest_statements_are_left_out_beyond_the_coverage() -> None:
    load = PgbenchWorkload(scripts=())
    arms, factors = arms_of(load, "16.12", "17.8")
    found = statements("SELECT 1", "SELECT a FROM t", "SELECT b FROM t")
    _, known = contexts_of(found, load, arms, factors=factors, design=Design(), coverage=0.6)
    assert [one.context for one in known] == [1, 2, None, 3]
    assert known[2].obstacle


def test_statements_that_cannot_be_executed_do_not_count_towards_the_coverage() -> None:
    load = PgbenchWorkload(scripts=())
    arms, factors = arms_of(load, "16.12", "17.8")
    found = statements("COMMIT", "SELECT 1", "SELECT a FROM t", "SELECT b FROM t")
    # With the time of COMMIT, the first SELECT would be enough.
    _, known = contexts_of(found, load, arms, factors=factors, design=Design(), coverage=0.4)
    assert [one.context for one in known] == [None, 1, 2, None, 3]


def test_a_complete_coverage_includes_statements_without_time() -> None:
    load, collection = PgbenchWorkload(scripts=()), Collection()
    arms, factors = arms_of(load, "16.12", "17.8")
    collection.add_counters("SELECT 1", calls=10, seconds=1.0, rows=None)
    collection.add_counters("SELECT a FROM t", calls=10, seconds=0.0, rows=None)
    _, known = contexts_of(collection.statements, load, arms, factors=factors, design=Design(), coverage=1.0)
    assert [one.context for one in known] == [1, 2, 3]


def test_a_statement_has_the_name_of_its_first_table() -> None:
    load = PgbenchWorkload(scripts=())
    arms, factors = arms_of(load, "16.12", "17.8")
    found = statements('SELECT FROM "public"."users"', "UPDATE ONLY app.Orders SET a = 1", "SELECT 1")
    _, known = contexts_of(found, load, arms, factors=factors, design=Design())
    assert [one.name for one in known][:3] == ["1-public.users", "2-app.orders", "3"]
