"""Output of EXPLAIN is read from every format; other text is rejected with place and reason."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.errors import ExitCode, PlanError
from pgversus.plans.explain import read_plans
from tests.bounded import processor_time
from tests.builders import DATA
from tests.fuzz.plans import REAL, read_or_refused
from tests.unit.plans.raw import node, plan, scan

ENTRY = {"Plan": scan("t"), "Planning Time": 0.5, "Execution Time": 2.0, "Settings": {"work_mem": "64kB"}}
PRETTY = json.dumps([ENTRY], indent=2)
LINES = PRETTY.splitlines()
AS_TABLE = "\n".join(
    ["          QUERY PLAN", "-" * 30, *(f" {line:<40}+" for line in LINES[:-1]), f" {LINES[-1]}", "(1 row)", ""]
)


def deep(levels: int) -> dict[str, Any]:
    """Return a plan with nested nodes."""
    root: dict[str, Any] = {"Node Type": "Result"}
    for _ in range(levels):
        root = {"Node Type": "Result", "Plans": [root]}
    return root


def wide(nodes: int, kind: str = "Append", /, **more: Any) -> dict[str, Any]:
    """Return a plan with sibling nodes."""
    return node(kind, *({"Node Type": "Seq Scan", **more} for _ in range(nodes)))


AS_CSV = 'QUERY PLAN\n"' + PRETTY.replace('"', '""') + '"\n'
PRINTED = json.dumps(json.loads((DATA / "plans" / "corpus" / "parmemo.json").read_text())["explain"]["18"], indent=2)


@pytest.mark.parametrize(
    "text",
    [
        PRETTY,
        json.dumps(ENTRY),
        "\ufeff\n" + PRETTY,
        AS_TABLE,
        AS_CSV,
        json.dumps([{"QUERY PLAN": [ENTRY]}]),
        json.dumps([{"QUERY PLAN": json.dumps([ENTRY])}]),
    ],
    ids=["array", "object of a log", "byte order mark", "table of psql", "CSV of psql", "rows", "rows of text"],
)
def test_plans_are_read_from_every_format(text: str) -> None:
    (found,) = read_plans(text, "plan.json")
    assert found.root.text == "Seq Scan on t"
    assert found.execution_s == 0.002
    assert found.settings == {"work_mem": "64kB"}


def test_several_statements_yield_several_plans() -> None:
    assert len(read_plans(PRETTY + "\n" + PRETTY, "plan.json")) == 2
    assert len(read_plans(json.dumps([ENTRY, ENTRY, ENTRY]), "plan.json")) == 3


def test_unknown_properties_of_future_majors_are_ignored() -> None:
    root = scan("t", Brand_New={"a": [1]}) | {"Node Type": "Quantum Scan"}
    found = plan(root, Novelty=[1, 2])
    assert found.root.text == "Quantum Scan on t"


@pytest.mark.parametrize(
    ("text", "slug", "reported"),
    [
        ("", "plan-none", "empty input"),
        ("  \n", "plan-none", "empty input"),
        ("Seq Scan on t  (cost=0.00..35.50 rows=2550 width=4)", "plan-none", "text format"),
        ("Hash Join\n  ->  Seq Scan on t", "plan-none", "text format"),
        ("- Plan: \n    Node Type: x", "plan-none", "another format"),
        ('<explain xmlns="x">', "plan-none", "another format"),
        ("[]", "plan-none", "no plan"),
        ("hello", "plan-no-json", "Expecting value"),
        (PRETTY[:-30], "plan-cut-off", "it ends with"),
        ('[{"Plan": {"Node Type": "Seq', "plan-cut-off", "it ends with"),
        ("[1]", "plan-malformed", "a number"),
        ('["Utility Statement"]', "plan-malformed", "text"),
        ('[{"Planning Time": 1}]', "plan-malformed", "'Planning Time'"),
        ('[{"Plan": []}]', "plan-malformed", '"Plan" is a list'),
        ('[{"Plan": {}}]', "plan-malformed", "an empty object"),
        ('[{"Plan": {"Node Type": "X", "Plans": {}}}]', "plan-malformed", "an object"),
        ('[{"Plan": {"Node Type": "X", "Plans": [3]}}]', "plan-malformed", "a list"),
        ('[{"Plan": {"Node Type": 3}}]', "plan-malformed", "a number"),
        ('[{"Plan": {"Node Type": "X", "Actual Rows": "many"}}]', "plan-malformed", "text"),
        ('[{"Plan": {"Node Type": "X", "Actual Loops": 1e999}}]', "plan-malformed", "a number out of range"),
        ('[{"Plan": {"Node Type": "X", "Plan Rows": NaN}}]', "plan-malformed", "a number out of range"),
        ('[{"Plan": {"Node Type": "X", "Plan Rows": ' + "9" * 500 + "}}]", "plan-malformed", "a number out of range"),
        ('[{"Plan": {"Node Type": "X", "Actual Rows": true}}]', "plan-malformed", "true or false"),
        ('[{"QUERY PLAN": "{"}]', "plan-cut-off", "it ends with"),
        ("[" * 100_000, "plan-none", "more levels"),
        ("9" * 10_000, "plan-none", "digits"),
        (json.dumps([{"QUERY PLAN": [{"QUERY PLAN": [ENTRY]}]}]), "plan-malformed", "QUERY PLAN"),
        (f'[{{"Plan": {{"Node Type": "X", "Brand New": {"[" * 600}{"]" * 600}}}}}]', "plan-none", "more levels"),
        (json.dumps([{"Plan": deep(300)}]), "plan-none", "more levels"),
        (json.dumps([{"Plan": wide(30_000)}]), "plan-malformed", "more nodes"),
        (json.dumps([{"x" * 10_000: 1}]), "plan-malformed", "xxx..."),
    ],
)
def test_text_without_a_valid_plan_is_rejected(text: str, slug: str, reported: str) -> None:
    with pytest.raises(PlanError) as caught:
        read_plans(text, "old.json")
    assert (caught.value.slug, caught.value.exit_code) == (slug, ExitCode.USAGE)
    assert reported in caught.value.found
    assert caught.value.where.startswith("old.json")
    assert caught.value.to_do


def test_an_invalid_node_is_located() -> None:
    root = node("Hash Join", scan("a"), node("Hash", {"Relation Name": "b"}))
    with pytest.raises(PlanError) as caught:
        read_plans(json.dumps([{"Plan": root}]), "old.json")
    assert caught.value.where == "old.json, Plan, Plans[1], Plans[0]"


(USUAL,) = read_plans(PRINTED, "18")
KEYS = ["Plan", "Plans", "Node Type", "QUERY PLAN", "Alias", "Grouping Sets", "Sort Key", "Filter", "Settings", "JIT"]
KEYS += ["Full-sort Groups", "Sort Methods Used", "Hash Batches", "Subplan Name", "Functions", "Serialization", "Time"]
NUMBERS = st.integers() | st.floats() | st.sampled_from([0, -1, 1e-300, 1e17, -1e17, 10**400, 0.1, 3])
TEXTS = st.text() | st.sampled_from(
    ["\ud800", "Hashed", "CTE c", "InitPlan 1 (returns $0)", "(ANY ((SubPlan 1).col1))"]
)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(KEYS), inner),
)


@pytest.mark.slow
@given(JSON)
def test_any_json_is_read_or_rejected(value: Any) -> None:
    assert read_or_refused(json.dumps(value), USUAL) in (
        "",
        "plan-none",
        "plan-malformed",
        "plan-no-json",
        "plan-cut-off",
    )


@given(st.data())
def test_a_damaged_plan_is_read_or_rejected(data: st.DataObject) -> None:
    """The text is truncated, duplicated, or has a changed character, as a network, an editor or a disk may do."""
    begin = data.draw(st.integers(0, len(PRINTED) - 1))
    end = min(len(PRINTED), begin + data.draw(st.sampled_from([1, 5, 200, 5000])))
    piece = data.draw(st.sampled_from(["", '"', "}", "[", "null", "1e999", "-", PRINTED[begin:end] * 2]))
    slug = read_or_refused(PRINTED[:begin] + piece + PRINTED[end:], USUAL)
    assert slug in ("", "plan-none", "plan-malformed", "plan-no-json", "plan-cut-off")


@pytest.mark.slow
@given(st.data())
def test_a_plan_with_one_changed_value_is_read_or_rejected(data: st.DataObject) -> None:
    document = json.loads(PRINTED)
    node = document[0]["Plan"]
    while node.get("Plans") and data.draw(st.booleans()):
        node = data.draw(st.sampled_from(node["Plans"]))
    node[data.draw(st.sampled_from(sorted(node)))] = data.draw(JSON)
    assert read_or_refused(json.dumps(document), USUAL) in ("", "plan-malformed")


@pytest.mark.slow
@given(st.data())
def test_a_plan_with_many_changed_values_is_read_or_rejected(data: st.DataObject) -> None:
    document = copy.deepcopy(data.draw(st.sampled_from(REAL))["17"])
    nodes = [document[0]["Plan"]]
    for one in nodes:
        nodes += one.get("Plans", [])
    for one in data.draw(st.lists(st.sampled_from(nodes), max_size=4)):
        name = data.draw(st.sampled_from(sorted({*one, *KEYS, *document[0]})))
        data.draw(st.sampled_from([one, document[0]]))[name] = data.draw(JSON)
    assert read_or_refused(json.dumps(document), USUAL) in ("", "plan-malformed", "plan-none")


@pytest.mark.slow
@pytest.mark.parametrize(
    "root",
    [
        wide(
            4_000, "Bitmap Heap Scan", **{"Node Type": "Bitmap Index Scan", "Index Name": "i", "Index Cond": "(a = 1)"}
        ),
        wide(4_000, **{"Alias": "t_1", "Relation Name": "t", "Filter": "((t_1.a = 1) AND (b = 2))"}),
        wide(4_000, **{"Subplan Name": "CTE c", "Parent Relationship": "InitPlan", "Actual Loops": 1}),
        wide(4_000, **{"Node Type": "CTE Scan", "CTE Name": "c", "Subplan Name": "CTE c", "Actual Loops": 1}),
        wide(4_000, "Sort", **{"Node Type": "Sort", "Plans": [scan("t")]}),
        deep(240),
    ],
    ids=["bitmaps", "partitions", "CTEs", "scans of CTEs", "sorts", "deep"],
)
def test_very_large_plans_are_compared_quickly(root: dict[str, Any]) -> None:
    text = json.dumps([{"Plan": root}])
    with processor_time(20):
        assert read_or_refused(text, USUAL) == ""


def test_long_csv_output_of_psql_is_read() -> None:
    long = json.dumps([{**ENTRY, "Query Text": "x" * 200_000}])
    assert read_plans('QUERY PLAN\n"' + long.replace('"', '""') + '"\n', "plan.csv")[0].query == "x" * 200_000


@pytest.mark.parametrize(
    "text", ["\n" * 100_000 + "x", "QUERY PLAN\n" + " " * 100_000 + "x", "QUERY PLAN\n" + '"' * 100_001]
)
def test_text_that_is_not_a_plan_is_rejected_quickly(text: str) -> None:
    with processor_time():
        assert read_or_refused(text, USUAL)
