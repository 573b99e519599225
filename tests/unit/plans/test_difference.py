"""Changes are found at their nodes and described. Plans are built node by node."""

from typing import Any

import pytest

from pgversus.plans.changes import LEVEL_OF, ChangeKind
from pgversus.plans.difference import PlanDifference, difference
from pgversus.plans.levels import PlanLevel, comparable, is_same_but_for_sorts
from pgversus.plans.sentences import sentences
from tests.unit.plans.raw import node, plan, scan


def changed(one: dict[str, Any], other: dict[str, Any]) -> PlanDifference:
    return difference(plan(one), plan(other))


def kinds(found: PlanDifference) -> list[ChangeKind]:
    return [change.kind for change in found.changes]


def index_scan(relation: str, index: str, **more: Any) -> dict[str, Any]:
    return scan(relation, "Index Scan", Index_Name=index, Scan_Direction="Forward", **more)


def test_a_subplan_that_became_a_join_is_reported_as_pulled_up() -> None:
    sub = scan("d", Filter="(c.x = d.x)", Parent_Relationship="SubPlan", Subplan_Name="SubPlan 1", Actual_Loops=10_000)
    old = scan("c", Filter="(SubPlan 1)", Plans=[sub])
    new = node("Hash Join", scan("c"), node("Hash", scan("d")), Join_Type="Inner", Hash_Cond="(c.x = d.x)")
    found = changed(old, new)
    assert found.level is PlanLevel.OPERATORS
    reported = sentences(found)
    assert reported[0] == "SubPlan 1 over d was pulled up into the main plan: it ran 10 000 times, now 1 time"
    assert "new: Hash Join (Hash Cond: c.x = d.x)" in reported
    assert "c.x = d.x moved from Filter of Seq Scan on d to Hash Cond of Hash Join" in reported
    assert sentences(changed(new, old))[0] == (
        "d is now read in SubPlan 1, not in the main plan: it ran 1 time, now 10 000 times"
    )


def test_a_sort_replaced_by_an_index_is_reported() -> None:
    old = node("Aggregate", node("Sort", scan("t"), Sort_Key=["t.b", "t.a"]), Strategy="Sorted", Group_Key=["b", "a"])
    new = node("Aggregate", index_scan("t", "t_ab"), Strategy="Sorted", Group_Key=["a", "b"])
    assert sentences(changed(old, new)) == [
        "Seq Scan on t is now Index Scan using t_ab on t",
        "Sort (Sort Key: t.b, t.a) was removed: the order now comes from index t_ab",
        "Group Key of GroupAggregate was b, a, now a, b: same columns, different order",
    ]
    assert ChangeKind.ADDED in kinds(changed(new, old))


def test_a_sort_removed_without_an_index_is_reported_as_removed() -> None:
    old = node("Unique", node("Sort", scan("t"), Sort_Key=["t.a"]))
    assert sentences(changed(old, node("Unique", scan("t")))) == ["removed: Sort (Sort Key: t.a)"]


def test_a_condition_moved_to_an_index_is_reported() -> None:
    found = changed(scan("t", Filter="(t.a = 1)"), index_scan("t", "t_a", Index_Cond="(t.a = 1)"))
    assert sentences(found) == [
        "Seq Scan on t is now Index Scan using t_a on t",
        "t.a = 1 moved from Filter of Seq Scan on t to Index Cond of Index Scan using t_a on t",
    ]


@pytest.mark.parametrize(
    ("old", "new", "reported"),
    [
        (
            node("Nested Loop", scan("a"), scan("b"), Join_Type="Inner"),
            node("Merge Join", scan("a"), scan("b"), Join_Type="Semi"),
            "Nested Loop is now a Merge Semi Join",
        ),
        (
            node("Hash Join", scan("a"), node("Hash", scan("b")), Join_Type="Left"),
            node("Hash Join", scan("b"), node("Hash", scan("a")), Join_Type="Right"),
            "Hash Left Join is now a Hash Right Join",
        ),
        (
            node("Hash Join", scan("a"), node("Hash", scan("b")), Join_Type="Inner"),
            node("Hash Join", scan("b"), node("Hash", scan("a")), Join_Type="Inner"),
            "the same operators are in a different order",
        ),
        (
            index_scan("t", "t_a"),
            index_scan("t", "t_a") | {"Scan Direction": "Backward"},
            "Index Scan using t_a on t is now Index Scan using t_a on t Backward",
        ),
        (
            node("Gather", node("Aggregate", scan("t"), Strategy="Plain", Partial_Mode="Partial")),
            node("Gather Merge", node("Aggregate", scan("t"), Strategy="Plain", Partial_Mode="Partial")),
            "Gather is now Gather Merge",
        ),
        (node("Limit", scan("a")), node("Limit", node("Materialize", scan("a"))), "new: Materialize"),
        (
            node("Append", scan("a"), scan("b")),
            node("Append", scan("a"), scan("b"), scan("x")),
            "x is now read by Seq Scan on x",
        ),
    ],
)
def test_changed_operators_are_reported(old: dict[str, Any], new: dict[str, Any], reported: str) -> None:
    found = changed(old, new)
    assert found.level is PlanLevel.OPERATORS
    assert reported in sentences(found)


def test_a_bitmap_belongs_to_its_heap_scan() -> None:
    def heap(below: dict[str, Any]) -> dict[str, Any]:
        return scan("t", "Bitmap Heap Scan", Recheck_Cond="whatever", Plans=[below])

    one = node("Bitmap Index Scan", Index_Name="t_a", Index_Cond="(a = 1)")
    two = node("Bitmap Index Scan", Index_Name="t_b", Index_Cond="(b = 2)")
    assert changed(heap(one), heap(one)).level is PlanLevel.IDENTICAL
    assert changed(heap(one), heap(one | {"Index Cond": "(a = 2)"})).level is PlanLevel.CONDITIONS
    assert sentences(changed(heap(one), heap(node("BitmapOr", one, two))))[0] == (
        "Bitmap Heap Scan using t_a on t is now Bitmap Heap Scan using BitmapOr(t_a, t_b) on t"
    )


def test_added_and_removed_conditions_are_reported_with_their_nodes() -> None:
    found = changed(scan("t", Filter="((a > 1) AND (b > 2))"), scan("t", Filter="((a > 1) AND (c > 3))"))
    assert found.level is PlanLevel.CONDITIONS
    assert sentences(found) == ["Seq Scan on t no longer has the Filter b > 2", "Seq Scan on t has a new Filter: c > 3"]


def test_the_order_of_an_equality_does_not_matter() -> None:
    found = changed(scan("t", Filter="((a = b) AND (c = 1))"), scan("t", Filter="((1 = c) AND (b = a))"))
    assert found.level is PlanLevel.IDENTICAL


@pytest.mark.parametrize(
    ("was", "now", "reported"),
    [
        (
            {"Sort_Method": "external merge"},
            {"Sort_Method": "quicksort"},
            "Sort Method of Sort was external merge, now",
        ),
        ({"Temp_Written_Blocks": 5}, {"Temp_Written_Blocks": 0}, "Sort no longer writes temporary files"),
        ({"Temp_Written_Blocks": 0}, {"Temp_Written_Blocks": 1}, "Sort now spills to temporary files"),
    ],
)
def test_changed_behaviour_is_reported(was: dict[str, Any], now: dict[str, Any], reported: str) -> None:
    found = changed(node("Sort", scan("t", Temp_Written_Blocks=0), **was), node("Sort", scan("t"), **now))
    assert found.level is PlanLevel.BEHAVIOUR
    assert sentences(found)[0].startswith(reported)


def test_facts_reported_by_only_one_major_are_ignored() -> None:
    reported = node("Sort", scan("t"), Sort_Method="quicksort", Temp_Written_Blocks=7)
    assert changed(node("Sort", scan("t")), reported).level is PlanLevel.IDENTICAL
    assert changed(reported, node("Sort", scan("t"))).level is PlanLevel.IDENTICAL


def test_a_node_that_never_ran_has_no_behaviour() -> None:
    ran = node("Sort", scan("t"), Temp_Written_Blocks=3)
    assert ChangeKind.SPILL_GONE not in kinds(changed(ran, ran | {"Actual Loops": 0, "Temp Written Blocks": 0}))


def test_facts_of_a_single_parallel_process_are_ignored() -> None:
    def sorted_by(method: str) -> dict[str, Any]:
        return node("Gather", node("Sort", scan("t"), Sort_Method=method, Sort_Space_Type="Memory"))

    assert changed(sorted_by("quicksort"), sorted_by("top-N heapsort")).level is PlanLevel.IDENTICAL


def test_a_spill_is_reported_only_at_its_node() -> None:
    def tree(blocks: int) -> dict[str, Any]:
        spilled = {"Temp_Written_Blocks": blocks}
        return node("Aggregate", node("Sort", scan("t", Temp_Written_Blocks=0), **spilled), **spilled)

    assert sentences(changed(tree(9), tree(0))) == ["Sort no longer writes temporary files"]


@pytest.mark.parametrize(
    ("was", "now", "reported"),
    [
        ({"Actual_Loops": 100_000}, {"Actual_Loops": 1}, "Seq Scan on t ran 100 000 times, now 1 time"),
        ({"Actual_Loops": 3}, {"Actual_Loops": 0}, "Seq Scan on t ran 3 times, now 0 times"),
        ({"Actual_Rows": 100}, {"Actual_Rows": 250}, "Seq Scan on t returned 100 rows, now 250"),
        (
            {"Filter": "(a > 1)", "Rows_Removed_by_Filter": 250},
            {"Filter": "(a > 1)", "Rows_Removed_by_Filter": 0},
            "Seq Scan on t read and discarded 250 rows, now 0",
        ),
        (
            {"Plan_Rows": 5000, "Actual_Rows": 26},
            {"Plan_Rows": 26, "Actual_Rows": 26},
            "rows of Seq Scan on t: estimated 5 000, actual 26 (192x off); now estimated 26, actual 26",
        ),
        (
            {"Shared_Hit_Blocks": 200_000, "Shared_Read_Blocks": 280},
            {"Shared_Hit_Blocks": 500, "Shared_Read_Blocks": 52},
            "total blocks accessed (hit or read): 200 280, now 552",
        ),
    ],
)
def test_different_amounts_of_work_are_the_same_plan(was: dict[str, Any], now: dict[str, Any], reported: str) -> None:
    found = changed(scan("t", **was), scan("t", **now))
    assert (found.level, found.is_same_plan) == (PlanLevel.WORK, True)
    assert reported in sentences(found)


def test_rounding_by_explain_is_not_a_change() -> None:
    # Up to 17 EXPLAIN prints 26 for 25.5 rows in each of 10,000 loops.
    rounded = scan("t", Actual_Rows=26, Actual_Loops=10_000)
    assert changed(rounded, scan("t", Actual_Rows=25.5, Actual_Loops=10_000)).level is PlanLevel.IDENTICAL
    assert changed(rounded, scan("t", Actual_Rows=40.0, Actual_Loops=10_000)).level is PlanLevel.WORK


def test_similar_changes_are_summarised() -> None:
    def partitions(kind: str) -> dict[str, Any]:
        return node("Append", *(scan(f"part_{number}", kind) for number in range(20)))

    reported = sentences(changed(partitions("Seq Scan"), partitions("Index Only Scan")))
    assert reported[2:] == ["Seq Scan on part_2 is now Index Only Scan on part_2", "... and 17 more like these"]


def test_time_is_split_into_nodes_that_changed_and_those_that_did_not() -> None:
    old = node("Limit", node("Sort", scan("t", Actual_Total_Time=10.0), Actual_Total_Time=50.0), Actual_Total_Time=51.0)
    new = node("Limit", scan("t", Actual_Total_Time=12.0), Actual_Total_Time=12.5)
    found = difference(plan(old, **{"Execution Time": 53.0}), plan(new, **{"Execution Time": 14.0}))
    assert found.time is not None
    assert found.time.changed_s == pytest.approx(-0.040)
    assert found.time.unchanged_s == pytest.approx(0.002 - 0.0005)
    assert found.time.unexplained_s == pytest.approx(-0.0005)


def test_serialization_time_is_not_part_of_the_plan() -> None:
    old, new = scan("t", Actual_Total_Time=10.0), scan("t", Actual_Total_Time=10.0)
    serialized = {"Execution Time": 24.0, "Serialization": {"Time": 13.8}}
    found = difference(plan(old, **{"Execution Time": 10.2}), plan(new, **serialized))
    assert found.time is not None
    assert found.time.unexplained_s == pytest.approx(0.0)


def test_the_work_of_a_cte_is_subtracted_from_its_scans() -> None:
    def tree(of_cte: float, of_scan: float) -> dict[str, Any]:
        cte = scan("t", Parent_Relationship="InitPlan", Subplan_Name="CTE c", Actual_Total_Time=of_cte)
        reader = node("CTE Scan", CTE_Name="c", Alias="c", Actual_Total_Time=of_scan, Parent_Relationship="Outer")
        return node("Aggregate", Plans=[cte, reader], Actual_Total_Time=of_scan + 1.0)

    found = changed(tree(10.0, 12.0), tree(30.0, 32.0))
    assert found.time is not None
    # Only the scan of t became slower; no value is negative.
    assert found.time.unchanged_s == pytest.approx(0.020)


def test_plans_without_execution_have_no_time() -> None:
    estimated = {"Node Type": "Seq Scan", "Relation Name": "t", "Plan Rows": 5}
    found = changed(estimated, estimated | {"Node Type": "Index Scan"})
    assert (found.level, found.time) == (PlanLevel.OPERATORS, None)
    assert found.fingerprints[0].behaviour is None


def test_plans_that_differ_only_in_sorts_are_recognised() -> None:
    def tree(*, sort: bool, key: str = "t.a") -> dict[str, Any]:
        inner = scan("t", Filter=f"({key} > 1)")
        below = node("Sort", inner, Sort_Key=["t.a"]) if sort else inner
        return node("Nested Loop", node("Aggregate", below, Strategy="Hashed"), scan("u"), Join_Type="Inner")

    def are_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
        return is_same_but_for_sorts(comparable(plan(one)), comparable(plan(other)))

    assert are_same(tree(sort=True), tree(sort=False))
    assert are_same(tree(sort=False), tree(sort=False))
    assert not are_same(tree(sort=True), tree(sort=False, key="t.b"))
    assert not are_same(tree(sort=True), node("Limit", tree(sort=False)))


def test_every_kind_belongs_to_a_level() -> None:
    assert set(LEVEL_OF) == set(ChangeKind)
