"""Rows are compared in order only if the statement orders them totally, and not at all if chance decides them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from pgversus.plans.statement_rows import StatementRows, writes
from pgversus.records.plans import UncertaintyKind
from tests.unit.plans.raw import node

UNIQUE = {("public", "t"): [("id",)], ("public", "u"): [("a", "b")]}
INDEXES = {"t_pkey": ("id",), "t_n_id": ("n", "id DESC"), "n_pkey": ("n",)}


def read(table: str = "t", kind: str = "Seq Scan", *, alias: str = "", **more: Any) -> dict[str, Any]:
    return node(kind, Relation_Name=table, Schema="public", Alias=alias or table, **more)


def rows(
    statement: str, root: dict[str, Any], *columns: str, unique: Mapping[tuple[str, str], Any] = UNIQUE
) -> StatementRows:
    return StatementRows(statement=statement, columns=columns, root=root, unique_keys=unique, index_keys=INDEXES)


def ordered(below: dict[str, Any], *keys: str, output: tuple[str, ...] = ("id", "n")) -> dict[str, Any]:
    return node("Sort", below, Sort_Key=list(keys), Output=list(output))


def limited(below: dict[str, Any], **more: Any) -> dict[str, Any]:
    return node("Limit", below, Output=below.get("Output", []), **more)


def join(kind: str, *sides: dict[str, Any], keys: tuple[str, ...], **more: Any) -> dict[str, Any]:
    return ordered(node(kind, *sides, **more), *keys, output=("t.id", "t.n", "u.a", "u.b"))


BY_INDEX = read(kind="Index Scan", Index_Name="t_pkey", Output=["n", "id"])
BY_TWO_KEYS = read(kind="Index Scan", Index_Name="t_n_id", Output=["id", "n"])
GROUPED = node("Aggregate", read(), Strategy="Sorted", Group_Key=["date_trunc('day'::text, t.n)", "t.m"])
BOTH = ("t.id", "u.a", "u.b")


@pytest.mark.parametrize(
    ("statement", "root"),
    [
        ("SELECT id, n FROM t ORDER BY id", ordered(read(), "t.id")),
        ("SELECT id, n FROM t ORDER BY n, 1 DESC NULLS FIRST", ordered(read(), "t.n", "t.id DESC NULLS FIRST")),
        ("select id, n from t order by t.id -- by key", ordered(read(), "t.id")),
        ("SELECT id, n FROM t ORDER BY lower(x), id", ordered(read(), "lower(t.x)", "t.id")),
        ('SELECT id, n FROM t AS "T" ORDER BY "T".id', ordered(read(alias="T"), '"T".id')),
        # A view has an alias of its own, which EXPLAIN may print in outputs as well.
        ("SELECT id, n FROM v ORDER BY id", ordered(read(), "t.id", output=("t.id", "t.n"))),
        # A semi-join returns each row of one side once.
        (
            "SELECT id, n FROM t WHERE EXISTS (SELECT 1 FROM u WHERE a = id) ORDER BY id",
            ordered(node("Hash Join", read("u"), node("Hash", read()), Join_Type="Right Semi"), "t.id"),
        ),
        # The index gives the order, and the statement asks for it.
        ("SELECT n FROM t ORDER BY id", BY_INDEX),
        ("SELECT n FROM t ORDER BY t.id LIMIT 3", limited(BY_INDEX)),
        ("SELECT id, n FROM t ORDER BY n, id DESC", BY_TWO_KEYS),
        # Nodes that drop rows or add columns leave the keys unique.
        ("SELECT id, n FROM t ORDER BY id", ordered(node("WindowAgg", read()), "t.id")),
        ("SELECT id, n FROM t ORDER BY id", node("Gather Merge", ordered(read(), "t.id"), Output=["id", "n"])),
        # Groups are identified by their keys, distinct rows by all columns, a join by the keys of both sides.
        (
            "SELECT date_trunc('day', n) d, m FROM t GROUP BY 1, 2 ORDER BY d, m",
            {**GROUPED, "Output": ["(date_trunc('day'::text, n))", "m"]},
        ),
        ("SELECT count(*) FROM t ORDER BY 1", ordered(node("Aggregate", read(), Strategy="Plain"), "(count(*))")),
        ("SELECT DISTINCT n FROM t ORDER BY n", node("Unique", ordered(read(), "t.n"), Output=["n"])),
        ("SELECT * FROM t, u ORDER BY id, a, b", join("Nested Loop", read(), read("u"), keys=BOTH, Join_Type="Inner")),
        (
            "SELECT * FROM u JOIN t ON t.id = u.a ORDER BY a, b",
            join("Hash Join", read("u"), node("Hash", read()), keys=BOTH[1:], Join_Type="Inner", Inner_Unique=True),
        ),
        (
            "SELECT id FROM t WHERE EXISTS (SELECT FROM u WHERE a = id) ORDER BY id",
            join("Nested Loop", read(), read("u"), keys=("t.id",), Join_Type="Semi"),
        ),
    ],
)
def test_an_order_is_total_if_its_keys_identify_a_row(statement: str, root: dict[str, Any]) -> None:
    columns = {"date_trunc": ("d", "m"), "SELECT n": ("n",), "DISTINCT": ("n",), "count": ("count",)}
    found = next((names for text, names in columns.items() if text in statement), ("id", "n"))
    assert rows(statement, root, *found).is_ordered


@pytest.mark.parametrize(
    ("statement", "root"),
    [
        # Without ORDER BY, or with one that is inside something else.
        ("SELECT id, n FROM t", BY_TWO_KEYS),
        ("SELECT id, n FROM (SELECT * FROM t ORDER BY id) s", ordered(read(), "t.id")),
        ("SELECT id, n, 'ORDER BY id' FROM t /* ORDER BY id */", BY_TWO_KEYS),
        # Not unique, and an expression of a key.
        ("SELECT id, n FROM t ORDER BY n", ordered(read(), "t.n")),
        ("SELECT id, n FROM t ORDER BY -id", ordered(read(), "(- t.id)")),
        ("SELECT id, n FROM t ORDER BY length('id'), date 'id'", ordered(read(), "length(t.n)", "t.n")),
        # The index has more keys than the statement.
        ("SELECT id, n FROM t ORDER BY n", BY_TWO_KEYS),
        ("SELECT id, n FROM t WHERE n = 5 ORDER BY m, n", BY_TWO_KEYS),
        # The name of a returned column comes before that of a column of the table.
        ("SELECT n AS id FROM t ORDER BY id", ordered(read(), "t.n", output=("n",))),
        ("SELECT 1 AS id, id AS x FROM t ORDER BY id", {**BY_INDEX, "Output": ["1", "id"]}),
        # A plan may add keys to those of a subquery.
        ("SELECT id, n FROM (SELECT * FROM t ORDER BY n, id) s ORDER BY n", ordered(read(), "t.n", "t.id")),
        (
            "SELECT id, n FROM (SELECT * FROM t ORDER BY n, id) s WHERE m = 5 ORDER BY m, n",
            ordered(read(), "t.n", "t.id"),
        ),
        # Parts of a key, nodes that repeat or mix rows, and keys of one side of a join.
        ("SELECT a FROM u ORDER BY a", ordered(read("u"), "u.a", output=("a",))),
        ("SELECT m FROM t GROUP BY 1, m ORDER BY m", {**GROUPED, "Output": ["m"]}),
        ("SELECT id, n FROM t ORDER BY id", ordered(node("ProjectSet", read()), "t.id")),
        ("SELECT id, n FROM t ORDER BY id", ordered(node("Append", read(), read()), "t.id")),
        ("SELECT * FROM t, u ORDER BY id", join("Nested Loop", read(), read("u"), keys=("t.id",), Join_Type="Inner")),
        (
            "SELECT * FROM u RIGHT JOIN t ON t.id = u.a ORDER BY a, b",
            join("Hash Join", read("u"), node("Hash", read()), keys=BOTH[1:], Join_Type="Right", Inner_Unique=True),
        ),
        (
            "SELECT count(*) FROM t GROUP BY CUBE (n) ORDER BY n",
            ordered(node("Aggregate", read(), Strategy="Mixed", Grouping_Sets=[{"Hash Keys": [["t.n"]]}]), "t.n"),
        ),
    ],
)
def test_an_order_is_not_total_without_proof(statement: str, root: dict[str, Any]) -> None:
    columns = {"n AS id": ("id",), "1 AS id": ("id", "x"), "SELECT a": ("a",), "SELECT m": ("m",), "count": ("count",)}
    found = next((names for text, names in columns.items() if text in statement), ("id", "n"))
    assert not rows(statement, root, *found).is_ordered


def test_a_key_that_may_be_null_does_not_identify_a_row() -> None:
    """The server leaves such keys out (sql/unique_keys.sql)."""
    assert not rows("SELECT id, n FROM t ORDER BY id", ordered(read(), "t.id"), "id", "n", unique={}).is_ordered


BY_N, BY_ID = ordered(read(), "t.n"), ordered(read(), "t.id")
FIRST = node("Limit", read(kind="Index Only Scan", Index_Name="t_pkey"), Output=["id"])
ANY = node("Limit", read(kind="Index Only Scan", Index_Name="t_n_id"), Output=["id"])


def beneath(limit: dict[str, Any]) -> dict[str, Any]:
    """Return a plan with a LIMIT in an InitPlan."""
    return node("Result", {**limit, "Parent Relationship": "InitPlan", "Subplan Name": "InitPlan 1"})


@pytest.mark.parametrize(
    ("statement", "root", "returned", "found"),
    [
        ("SELECT id, n FROM t ORDER BY n LIMIT 10", limited(BY_N), 10, (UncertaintyKind.LIMIT_WITH_TIES, "LIMIT 10")),
        ("SELECT id, n FROM t LIMIT 10", limited(read()), 10, (UncertaintyKind.LIMIT, "LIMIT 10")),
        ("SELECT id, n FROM t OFFSET 3", limited(read()), 10, (UncertaintyKind.LIMIT, "OFFSET")),
        ("SELECT id, n FROM t LIMIT 10 OFFSET 3", limited(read()), 9, (UncertaintyKind.LIMIT, "LIMIT 10")),
        ("SELECT * FROM (SELECT id, n FROM t LIMIT 9) s", limited(read()), 9, (UncertaintyKind.INNER_LIMIT, "")),
        ("SELECT (SELECT id FROM t LIMIT 1)", beneath(ANY), 1, (UncertaintyKind.INNER_LIMIT, "")),
        # All rows are returned, or the order leaves no choice.
        ("SELECT id, n FROM t LIMIT 10", limited(read()), 9, None),
        ("SELECT id, n FROM t ORDER BY id LIMIT 10", limited(BY_ID), 10, None),
        ("SELECT id, n FROM t ORDER BY n FETCH FIRST 9 ROWS WITH TIES", limited(BY_N), 9, None),
        ("SELECT id, n FROM t ORDER BY n, id LIMIT 9", limited(ordered(read(), "t.n", "t.id")), 9, None),
        ("SELECT * FROM (SELECT id, n FROM t ORDER BY id LIMIT 9) s", limited(BY_ID), 9, None),
        ("SELECT min(id) FROM t", beneath(FIRST), 1, None),
        ("SELECT max(n) FROM t", beneath(limited(ordered(read(), "t.n DESC", output=("n",)))), 1, None),
    ],
)
def test_a_limit_that_leaves_a_choice_is_named(
    statement: str, root: dict[str, Any], returned: int, found: tuple[UncertaintyKind, str] | None
) -> None:
    reasons = rows(statement, root, "id", "n").uncertainties([], returned)
    assert [(one.kind, one.name) for one in reasons] == ([] if found is None else [found])


def test_equal_rows_may_be_in_any_order_below_a_limit() -> None:
    root = limited(ordered(read(), "t.n", output=("n",)))
    assert rows("SELECT n FROM t ORDER BY n LIMIT 9", root, "n").uncertainties([], 9) == ()
    assert not rows("SELECT n FROM t ORDER BY n LIMIT 9", root, "n").is_ordered


def test_functions_of_a_view_are_in_the_plan() -> None:
    inner = read(
        Filter="((t.n > random()) AND (t.x <> 'nextval()'::text))", Output=["t.id", "s.pick(t.id)", '"F"(t.n)']
    )
    found = rows("SELECT * FROM v", node("Gather", inner, Output=["t.id"]), "id")
    assert found.functions == {("", "random"), ("s", "pick"), ("", "F")}
    reasons = found.uncertainties([("", "random"), ("s", "pick")], 3)
    assert [(one.kind, one.name) for one in reasons] == [
        (UncertaintyKind.VOLATILE, "random()"),
        (UncertaintyKind.VOLATILE, "s.pick()"),
    ]


def test_the_current_time_and_samples_make_rows_uncertain() -> None:
    scan = read(kind="Sample Scan", Filter="(t.at > (now() - '1 day'::interval))", Output=["CURRENT_DATE"])
    reasons = rows("SELECT * FROM v", scan, "current_date").uncertainties([], 3)
    assert [(one.kind, one.name) for one in reasons] == [
        (UncertaintyKind.CLOCK, "CURRENT_DATE"),
        (UncertaintyKind.CLOCK, "now()"),
        (UncertaintyKind.SAMPLE, ""),
    ]


def test_values_of_the_server_itself_are_not_compared() -> None:
    catalog = node("Seq Scan", Relation_Name="pg_class", Schema="pg_catalog", Alias="c", Output=["c.relname"])
    assert names_of_server(catalog) == ["pg_class"]
    assert names_of_server(read(Output=["t.ctid", "t.id", "'xmin'::text"])) == ["ctid"]
    assert names_of_server(node("Result", Output=["version()", "pg_typeof(1)"])) == ["version()"]
    activity = node("Function Scan", Function_Name="pg_stat_get_activity", Schema="pg_catalog", Alias="s")
    assert names_of_server(activity) == ["pg_stat_get_activity()"]
    assert names_of_server(node("Function Scan", Function_Name="generate_series", Schema="pg_catalog", Alias="g")) == []
    assert names_of_server(read(Output=["t.id"])) == []


def names_of_server(root: dict[str, Any]) -> list[str]:
    found = rows("SELECT 1", root).uncertainties([], 1)
    return [one.name for one in found if one.kind is UncertaintyKind.SERVER]


def named(
    root: dict[str, Any], statement: str = "SELECT 1", *, has_floats: bool = False
) -> list[tuple[UncertaintyKind, str]]:
    found = replace(rows(statement, root, "id"), has_floats=has_floats)
    return [(one.kind, one.name) for one in found.uncertainties([], 3)]


@pytest.mark.parametrize(
    ("statement", "root", "is_uncertain"),
    [
        (
            "SELECT DISTINCT ON (n) id, n FROM t ORDER BY n",
            node("Unique", ordered(read(), "t.n"), Output=["id", "n"]),
            True,
        ),
        (
            "SELECT DISTINCT ON (n) id, n FROM t ORDER BY n, id",
            node("Unique", ordered(read(), "t.n", "t.id"), Output=["id", "n"]),
            False,
        ),
        # In a view; an index gives the order.
        ("SELECT * FROM v", node("Unique", ordered(read(), "t.n"), Output=["id", "n"]), True),
        ("SELECT DISTINCT ON (n) * FROM t", node("Unique", BY_TWO_KEYS, Output=["id", "n"]), True),
        # Without ON, all columns are keys.
        ("SELECT DISTINCT n FROM t", node("Unique", ordered(read(), "t.n", output=("n",)), Output=["n"]), False),
        ("SELECT DISTINCT n FROM t", node("Unique", BY_TWO_KEYS, Output=["n"]), False),
    ],
)
def test_distinct_on_is_certain_only_with_a_total_order(
    statement: str, root: dict[str, Any], *, is_uncertain: bool
) -> None:
    assert named(root, statement) == ([(UncertaintyKind.DISTINCT_ON, "")] if is_uncertain else [])


@pytest.mark.parametrize(
    ("function", "keys", "found"),
    [
        ("row_number()", ("t.n",), [(UncertaintyKind.WINDOW_TIES, "row_number()")]),
        ("lag(t.m)", ("t.n",), [(UncertaintyKind.WINDOW_TIES, "lag()")]),
        ("row_number()", ("t.n", "t.id"), []),
        ("rank()", ("t.n",), []),
    ],
)
def test_window_functions_that_tell_ties_apart_need_a_total_order(
    function: str, keys: tuple[str, ...], found: list[tuple[UncertaintyKind, str]]
) -> None:
    assert named(node("WindowAgg", ordered(read(), *keys), Output=["t.n", f"{function} OVER (?)"])) == found


@pytest.mark.parametrize(
    ("output", "has_floats", "found"),
    [
        ("array_agg(t.id)", False, [(UncertaintyKind.AGGREGATE_ORDER, "array_agg()")]),
        ("string_agg((t.a)::text, ','::text ORDER BY t.id)", False, []),
        (
            "jsonb_agg(lower(t.a)) FILTER (WHERE (t.b ORDER BY c))",
            False,
            [(UncertaintyKind.AGGREGATE_ORDER, "jsonb_agg()")],
        ),
        ("sum(t.x)", True, [(UncertaintyKind.FLOAT, "sum()")]),
        ("sum(t.x)", False, []),
        ("max(t.x)", True, []),
    ],
)
def test_aggregates_that_depend_on_the_order_of_their_input_are_named(
    output: str, found: list[tuple[UncertaintyKind, str]], *, has_floats: bool
) -> None:
    assert named(node("Aggregate", read(), Strategy="Plain", Output=[output]), has_floats=has_floats) == found


def written(operation: str, *below: dict[str, Any], table: str = "t") -> dict[str, Any]:
    return node("ModifyTable", *below, Operation=operation, Relation_Name=table, Schema="public", Alias=table)


OF_ONE_KEY = node("Hash Join", read(), node("Hash", read("u")), Join_Type="Inner", Inner_Unique=True)
OF_MANY = node("Hash Join", read(), node("Hash", read("u")), Join_Type="Inner")
OF_OTHER_SIDE = node("Hash Join", read("u"), node("Hash", read()), Join_Type="Inner", Inner_Unique=True)


@pytest.mark.parametrize(
    ("root", "is_certain"),
    [
        (written("Update", read()), True),
        (written("Delete", node("Append", read("t_1"), read("t_2"))), True),
        (written("Insert", OF_MANY), True),
        (written("Update", OF_ONE_KEY), True),
        (written("Delete", node("Nested Loop", read(), read("u"), Join_Type="Semi")), True),
        (written("Update", OF_MANY), False),
        # The plan proves one row of t for each row of u, not the reverse.
        (written("Update", OF_OTHER_SIDE), False),
        (written("Delete", OF_MANY), False),
        # No key identifies its rows.
        (written("Update", OF_ONE_KEY, table="v"), False),
        (written("Merge", OF_ONE_KEY), False),
        ({**written("Insert", read()), "Conflict Resolution": "UPDATE"}, False),
        # Up to 13.
        (written("Update", {**OF_ONE_KEY, "Parent Relationship": "Member"}), True),
        (written("Update", {**OF_MANY, "Parent Relationship": "Member"}), False),
        # A join on another server.
        (written("Delete", node("Foreign Scan")), False),
        (node("CTE Scan", written("Update", read())), False),
    ],
)
def test_values_of_written_rows_are_certain_if_one_row_at_most_provides_each(
    root: dict[str, Any], *, is_certain: bool
) -> None:
    assert writes(root)
    assert rows("UPDATE t SET n = u.a FROM u WHERE id = u.b", root).has_one_source_row is is_certain


UPSERT = "INSERT INTO t VALUES (1) ON CONFLICT (id) DO UPDATE SET n = f(excluded.n), at = {}"


@pytest.mark.parametrize(
    ("statement", "root", "clocks"),
    [
        # EXPLAIN does not print what ON CONFLICT and MERGE assign.
        (UPSERT.format("now()"), {**written("Insert", node("Result")), "Conflict Resolution": "UPDATE"}, {"now()"}),
        (
            UPSERT.format("current_timestamp"),
            {**written("Insert", node("Result")), "Conflict Resolution": "UPDATE"},
            {"CURRENT_TIMESTAMP"},
        ),
        (UPSERT.format("'now()'"), {**written("Insert", node("Result")), "Conflict Resolution": "UPDATE"}, set()),
        ("MERGE INTO t USING u ON true WHEN MATCHED AND t.at < now() THEN DELETE", written("Merge", read()), {"now()"}),
        # A default of a table that was created on 9.6 or older.
        ("INSERT INTO t", written("Insert", node("Result", Output=["('now'::text)::date"])), {"'now'"}),
    ],
)
def test_clocks_that_a_plan_does_not_show_are_found(statement: str, root: dict[str, Any], clocks: set[str]) -> None:
    found = rows(statement, root).uncertainties((), 0)
    assert {one.name for one in found if one.kind is UncertaintyKind.CLOCK} == clocks


def test_functions_in_hidden_actions_are_found() -> None:
    root = {**written("Insert", node("Result")), "Conflict Resolution": "UPDATE"}
    assert ("", "f") in rows(UPSERT.format("1"), root).functions
    assert not rows("INSERT INTO t SELECT f(1)", written("Insert", node("Result"))).functions


@pytest.mark.parametrize(
    ("output", "is_uncertain"),
    [(["n", "t.ctid"], False), (["n", "ctid"], False), (["(xmin)::text"], True), (["(t.ctid)::text"], True)],
)
def test_written_system_columns_belong_to_the_server(output: list[str], *, is_uncertain: bool) -> None:
    found = rows("UPDATE t SET n = 1", written("Update", read(Output=output))).uncertainties((), 0)
    assert bool(found) is is_uncertain


def test_a_query_does_not_write() -> None:
    assert not writes(OF_MANY)
    assert not rows("SELECT 1", OF_MANY).has_one_source_row


def test_names_in_quotes_order_rows_as_well() -> None:
    by_orm = 'SELECT "t"."id", "t"."n" FROM "t" ORDER BY "t"."id" ASC LIMIT 1'
    assert rows(by_orm, limited(BY_INDEX), "n", "id").is_ordered
    # Not a clause of the statement.
    assert not rows('SELECT id AS "limit" FROM t', read(), "limit").is_ordered


@pytest.mark.parametrize("call", ["any_value(t.n)", "JSON_ARRAYAGG(t.n)", "JSON_OBJECTAGG(t.n : t.id)"])
def test_aggregates_that_keep_the_order_of_their_input_are_uncertain(call: str) -> None:
    root = node("Aggregate", read(), Output=[call])
    (found,) = rows("SELECT x FROM t", root, "x").uncertainties((), rows=1)
    assert found.kind is UncertaintyKind.AGGREGATE_ORDER
