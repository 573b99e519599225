"""Changes are found at their nodes and described. Plans are built node by node."""

import math
from dataclasses import replace
from typing import Any

import pytest
from scipy import stats

from pgversus.plans.changes import LEVEL_OF, ChangeKind
from pgversus.plans.difference import PlanDifference, difference
from pgversus.plans.levels import PlanLevel, is_same_but_for_sorts
from pgversus.plans.own_work import own
from pgversus.plans.plan import Plan
from pgversus.plans.sentences import headline, number, sentences
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
    assert reported[0] == "SubPlan 1 over d was pulled up into the main plan: it ran 10 000 times, now once"
    assert "new: Hash Join (Hash Cond: c.x = d.x)" in reported
    assert "c.x = d.x moved from Filter of Seq Scan on d to Hash Cond of Hash Join" in reported
    assert sentences(changed(new, old))[0] == (
        "d is now read in SubPlan 1, not in the main plan: it ran once, now 10 000 times"
    )


def test_a_sort_replaced_by_an_index_is_reported() -> None:
    old = node("Aggregate", node("Sort", scan("t"), Sort_Key=["t.b", "t.a"]), Strategy="Sorted", Group_Key=["b", "a"])
    new = node("Aggregate", index_scan("t", "t_ab"), Strategy="Sorted", Group_Key=["a", "b"])
    known = replace(plan(new), index_keys={"t_ab": ("a", "b")})
    assert sentences(difference(plan(old), known)) == [
        "Seq Scan on t is now Index Scan using t_ab on t",
        "Sort (Sort Key: t.b, t.a) was removed: the order now comes from index t_ab",
        "Group Key of GroupAggregate was b, a, now a, b: same columns, different order",
    ]
    assert ChangeKind.ADDED in kinds(changed(new, old))


def test_a_custom_plan_that_became_generic_is_reported() -> None:
    custom, generic = (plan(index_scan("t", "t_a", Index_Cond=f"(t.a = {value})")) for value in ("'$1'::text", "$1"))
    found = difference(custom, generic, parameters=1)
    assert found.level is PlanLevel.CONDITIONS
    assert sentences(found)[0] == (
        "now a generic plan, for any parameter values; it was a custom plan, for these parameter values"
    )
    assert sentences(difference(generic, custom, parameters=1))[0] == (
        "now a custom plan, for these parameter values; it was a generic plan"
    )
    for parameters in (0, 1):
        assert ChangeKind.GENERIC not in kinds(difference(generic, generic, parameters=parameters))
    # The result of a subplan, in a statement without parameters.
    assert ChangeKind.GENERIC not in kinds(difference(custom, generic))


def ordered(kind: str, *keys: str, **more: Any) -> dict[str, Any]:
    return node("Limit", node("Sort", scan("t", kind, **more), Sort_Key=list(keys)))


@pytest.mark.parametrize(
    ("old", "new", "keys", "is_from_index"),
    [
        (ordered("Seq Scan", "t.a"), node("Limit", index_scan("t", "i")), ("a", "b"), True),
        (
            ordered("Seq Scan", "t.a DESC"),
            node("Limit", index_scan("t", "i") | {"Scan Direction": "Backward"}),
            ("a",),
            True,
        ),
        (ordered("Seq Scan", "t.a DESC NULLS LAST"), node("Limit", index_scan("t", "i")), ("a DESC NULLS LAST",), True),
        # The keys of the index are others, or unknown, or in another direction.
        (ordered("Seq Scan", "t.a"), node("Limit", index_scan("t", "i")), ("b", "a"), False),
        (ordered("Seq Scan", "t.a", "t.b"), node("Limit", index_scan("t", "i")), ("a",), False),
        (ordered("Seq Scan", "t.a DESC"), node("Limit", index_scan("t", "i")), ("a",), False),
        (ordered("Seq Scan", "t.a"), node("Limit", index_scan("t", "i")), (), False),
        # A node in between destroys the order.
        (ordered("Seq Scan", "t.a"), node("Limit", node("Gather", index_scan("t", "i"))), ("a",), False),
        # Nothing needs it: a hash join, a hashed aggregate.
        (
            node("Merge Join", node("Sort", scan("t"), Sort_Key=["t.a"]), scan("u"), Join_Type="Inner"),
            node("Nested Loop", scan("u"), index_scan("t", "i"), Join_Type="Inner"),
            ("a",),
            False,
        ),
        (
            node("Aggregate", node("Sort", scan("t"), Sort_Key=["t.a"]), Strategy="Sorted", Group_Key=["t.a"]),
            node("Aggregate", index_scan("t", "i"), Strategy="Hashed", Group_Key=["t.a"]),
            ("a",),
            False,
        ),
        # The aggregate has an order of its own besides its groups.
        (
            node("Aggregate", node("Sort", scan("t"), Sort_Key=["t.a", "t.b"]), Strategy="Sorted", Group_Key=["t.a"]),
            node("Aggregate", index_scan("t", "i"), Strategy="Sorted", Group_Key=["t.a"]),
            ("a",),
            False,
        ),
    ],
)
def test_the_order_comes_from_an_index_only_if_its_keys_and_the_plan_prove_it(
    old: dict[str, Any], new: dict[str, Any], keys: tuple[str, ...], *, is_from_index: bool
) -> None:
    found = difference(plan(old), replace(plan(new), index_keys={"i": keys} if keys else {}))
    assert (ChangeKind.ORDER_FROM_INDEX in kinds(found)) is is_from_index


def test_reads_of_different_tables_are_never_called_one_read() -> None:
    assert sentences(changed(scan("p1"), scan("p2"))) == [
        "p1 is no longer read (it was read by Seq Scan on p1)",
        "p2 is now read by Seq Scan on p2",
    ]
    assert ChangeKind.ACCESS not in kinds(changed(index_scan("a", "a_pkey"), index_scan("b", "b_pkey")))


def test_a_table_that_was_never_read_or_may_be_read_by_a_function_is_not_called_unread() -> None:
    pruned = node("Append", scan("p1"), scan("p2", Actual_Loops=0))
    assert "removed: Seq Scan on p2" in sentences(changed(pruned, scan("p1")))
    called = node("Function Scan", Function_Name="f", Alias="f")
    assert sentences(changed(scan("t"), called))[0] == "removed: Seq Scan on t"
    assert sentences(changed(called, scan("t")))[1] == "new: Seq Scan on t"


def test_the_size_of_a_spill_of_both_is_reported() -> None:
    old, new = (node("Sort", scan("t"), Sort_Key=["a"], Temp_Written_Blocks=blocks) for blocks in (1000, 100_000))
    found = changed(old, new)
    assert (found.level, sentences(found)) == (
        PlanLevel.WORK,
        ["blocks written to temporary files by Sort: 1 000, now 100 000"],
    )
    other_size = replace(plan(new), block_bytes=4096)
    assert ChangeKind.TEMP_BLOCKS not in kinds(difference(replace(plan(old), block_bytes=8192), other_size))


def test_a_plan_is_not_called_the_same_without_saying_that_tests_of_subplans_were_not_compared() -> None:
    def filtered(test: str) -> Plan:
        sub = scan("d", Parent_Relationship="SubPlan", Subplan_Name="SubPlan 1")
        return plan(scan("c", Filter=test, Plans=[sub]))

    old, new = filtered("(SubPlan 1)"), filtered("(ANY (c.x = (SubPlan 1).col1))")
    assert headline(difference(old, new)).endswith(
        "(tests of subplans are not compared, because only one of the two plans shows them)"
    )
    assert "tests" not in headline(difference(old, old))


def test_a_table_that_is_read_once_instead_of_twice_is_still_read() -> None:
    twice = node("Nested Loop", scan("t"), scan("t", Alias="t_1"), Join_Type="Inner")
    assert sentences(changed(twice, scan("t"))) == ["removed: Nested Loop", "removed: Seq Scan on t t_1"]


def test_aliases_that_look_numbered_are_told_apart() -> None:
    def joined(*aliases: str) -> dict[str, Any]:
        return node("Nested Loop", *(scan("t", Alias=alias) for alias in aliases), Join_Type="Left")

    assert kinds(changed(joined("t_1", "t_2"), joined("t_2", "t_1"))) == [ChangeKind.JOIN_SIDES]


def test_subqueries_on_one_table_are_recognized_by_their_conditions() -> None:
    def grouped(alias: str, column: str) -> dict[str, Any]:
        return node("Aggregate", scan("t", Alias=alias, Filter=f"({alias}.{column} > 0)"), Strategy="Hashed")

    def joined(*columns: str) -> dict[str, Any]:
        sides = [grouped(alias, column) for alias, column in zip(("t", "t_1"), columns, strict=True)]
        return node("Nested Loop", *sides, Join_Type="Inner")

    # PostgreSQL numbers tables of subqueries in the order of the plan.
    assert changed(joined("a", "b"), joined("a", "b")).level is PlanLevel.IDENTICAL
    assert sentences(changed(joined("a", "b"), joined("b", "a"))) == ["the same operators are in a different order"]


def test_exchanged_reads_of_one_table_are_a_change() -> None:
    def joined(*aliases: str) -> dict[str, Any]:
        outer, inner = (scan("emp", Alias=alias) for alias in aliases)
        return node("Hash Join", outer, node("Hash", inner), Join_Type="Inner", Hash_Cond="(emp.mgr = emp_1.id)")

    found = changed(joined("emp", "emp_1"), joined("emp_1", "emp"))
    assert (found.level, sentences(found)) == (PlanLevel.OPERATORS, ["the same operators are in a different order"])


def test_repeated_reads_of_a_table_may_need_quotes() -> None:
    def joined(*columns: str) -> dict[str, Any]:
        outer, inner = (
            scan("User", Alias=alias, Filter=f'("{alias}".{column} > 0)')
            for alias, column in zip(("User", "User_1"), columns, strict=True)
        )
        return node("Nested Loop", outer, inner, Join_Type="Inner", Join_Filter='("User".k = "User_1".k)')

    found = sentences(changed(joined("a", "b"), joined("b", "a")))
    assert found == ["the same operators are in a different order"]


def test_the_other_reads_of_a_table_keep_their_names_if_one_is_gone() -> None:
    def joined(*reads: tuple[str, str]) -> dict[str, Any]:
        first, *others = (scan("t", Alias=alias, Filter=f"({alias}.{column} > 0)") for alias, column in reads)
        for other in others:
            first = node("Nested Loop", first, other, Join_Type="Inner", Join_Filter=f"(t.k = {other['Alias']}.k)")
        return first

    old, new = joined(("t", "a"), ("t_1", "b"), ("t_2", "c")), joined(("t", "a"), ("t_1", "c"))
    found = sentences(changed(old, new))
    assert found == [
        "removed: Nested Loop (Join Filter: t.k = t_1.k)",
        "removed: Seq Scan on t t_1 (Filter: t_1.b > 0)",
    ]


def test_subplans_keep_their_names_if_another_one_is_gone() -> None:
    def sub(relation: str, number: int) -> dict[str, Any]:
        return scan(relation, Parent_Relationship="SubPlan", Subplan_Name=f"SubPlan {number}")

    def tree(*subs: str) -> dict[str, Any]:
        return scan(
            "t", Filter=f"(x = (SubPlan {len(subs)}))", Plans=[sub(*one) for one in zip(subs, (1, 2), strict=False)]
        )

    assert sentences(changed(tree("a", "b"), tree("b"))) == [
        "a is no longer read (it was read by Seq Scan on a)",
    ]
    found = sentences(changed(tree("b"), tree("a", "b")))
    assert found == ["a is now read by Seq Scan on a"]


def test_aggregates_above_each_other_are_paired_by_their_keys() -> None:
    def tree(inner: str) -> dict[str, Any]:
        below = node("Aggregate", scan("t"), Strategy=inner, Group_Key=["t.a", "t.b"])
        return node("Aggregate", below, Strategy="Hashed", Group_Key=["t.a"])

    found = sentences(changed(tree("Hashed"), tree("Sorted")))
    assert found == ["HashAggregate is now GroupAggregate"]
    middle = node("Aggregate", node("Sort", scan("t"), Sort_Key=["t.a"]), Strategy="Sorted", Group_Key=["t.a", "t.b"])
    assert "Group Key of" not in " ".join(sentences(changed(tree("Hashed"), middle)))


def test_partial_results_of_more_workers_are_no_change() -> None:
    def tree(workers: int) -> dict[str, Any]:
        partial = node("Aggregate", scan("t"), Partial_Mode="Partial", Actual_Loops=workers + 1, Actual_Rows=100)
        rows = 100 * (workers + 1)
        gather = node("Gather", partial, Workers_Planned=2, Workers_Launched=workers, Actual_Rows=rows)
        return node("Aggregate", node("Sort", gather, Actual_Rows=rows), Partial_Mode="Finalize", Actual_Rows=100)

    assert changed(tree(1), tree(2)).level is PlanLevel.IDENTICAL


def test_the_sort_method_of_the_last_execution_is_not_that_of_all() -> None:
    def tree(method: str, loops: int) -> dict[str, Any]:
        return node("Sort", scan("t"), Sort_Key=["t.a"], Sort_Method=method, Actual_Loops=loops)

    assert changed(tree("quicksort", 1), tree("top-N heapsort", 1)).level is PlanLevel.BEHAVIOUR
    assert changed(tree("quicksort", 5), tree("top-N heapsort", 5)).level is PlanLevel.IDENTICAL


def test_foreign_joins_of_other_tables_are_different() -> None:
    old, new = (node("Foreign Scan", Relations=f"(a) INNER JOIN ({other})") for other in "bc")
    assert changed(old, new).level is PlanLevel.OPERATORS
    text = " ".join(sentences(changed(node("Nested Loop", scan("a"), scan("b"), Join_Type="Inner"), old)))
    assert "no longer read" not in text


def test_a_read_inside_a_join_of_a_subplan_does_not_count_its_executions() -> None:
    sub = node("Nested Loop", scan("e"), scan("d", Actual_Loops=500), Join_Type="Inner", Actual_Loops=10)
    sub |= {"Parent Relationship": "SubPlan", "Subplan Name": "SubPlan 1"}
    old = scan("c", Filter="(x = (SubPlan 1))", Plans=[sub])
    new = node("Hash Join", scan("c"), node("Hash", scan("d")), Join_Type="Semi")
    assert "SubPlan 1 over d was pulled up into the main plan" in sentences(changed(old, new))


def test_names_of_tables_that_only_one_plan_prints_are_no_change() -> None:
    short = node("Sort", scan("t", Filter="(a = 1)"), Sort_Key=["b"])
    verbose = node("Sort", scan("t", Schema="public", Filter="(t.a = 1)"), Sort_Key=["t.b"])
    assert changed(short, verbose).level is PlanLevel.IDENTICAL
    other = node("Sort", scan("t", Schema="public", Filter="(t.a = 2)"), Sort_Key=["t.b"])
    assert changed(short, other).level is PlanLevel.CONDITIONS


def test_a_subplan_of_an_index_condition_is_read_with_a_bitmap_as_well() -> None:
    sub = scan("u", Parent_Relationship="SubPlan", Subplan_Name="SubPlan 1")
    old = index_scan("t", "i", Index_Cond="(t.a = (SubPlan 1))", Plans=[sub])
    bitmap = node("Bitmap Index Scan", Index_Name="i", Index_Cond="(t.a = (SubPlan 1))", Plans=[sub])
    assert "no longer read" not in " ".join(sentences(changed(old, scan("t", "Bitmap Heap Scan", Plans=[bitmap]))))


def test_a_subplan_that_partitions_share_is_no_work_of_their_own() -> None:
    sub = node("Sort", scan("u"), Parent_Relationship="SubPlan", Subplan_Name="SubPlan 1", Actual_Total_Time=100.0)
    members = [
        scan(name, Alias=f"p_{number}", Filter=f"(p_{number}.v = (SubPlan 1))", Actual_Total_Time=55.0)
        for number, name in enumerate(("p1", "p2"), 1)
    ]
    members[0]["Plans"] = [sub]
    root = node("Append", *({"Parent Relationship": "Member"} | one for one in members), Actual_Total_Time=110.0)
    found = plan(root)
    times = {one.op: work.time_s for one, work in zip(found.nodes, own(found), strict=True)}
    assert sum(work.time_s or 0.0 for work in own(found)) == pytest.approx(0.110)
    assert times["Sort"] == pytest.approx(0.100)


def test_a_key_that_is_a_subplan_is_computed_below() -> None:
    sub = scan("b", Parent_Relationship="SubPlan", Subplan_Name="SubPlan 1", Actual_Total_Time=90.0)
    below = scan("a", Actual_Total_Time=100.0, Plans=[sub])
    grouped = node("Aggregate", below, Strategy="Hashed", Group_Key=["(SubPlan 1)"], Actual_Total_Time=101.0)
    found = plan(node("Sort", grouped, Sort_Key=["(SubPlan 1)"], Actual_Total_Time=102.0))
    assert [work.time_s for work in own(found)] == pytest.approx([0.001, 0.001, 0.010, 0.090])


def test_keys_of_partitions_do_not_depend_on_their_order() -> None:
    def tree(*numbers: int) -> dict[str, Any]:
        members = (scan(f"part_{n}", Alias=f"p_{n}", Parent_Relationship="Member") for n in numbers)
        return node("Sort", node("Append", *members), Sort_Key=["p.k"])

    assert "Sort Key" not in " ".join(sentences(changed(tree(1, 2), tree(2, 1))))


def test_a_table_may_be_read_by_a_foreign_join() -> None:
    old = node("Nested Loop", scan("f", "Foreign Scan"), scan("g", "Foreign Scan"), Join_Type="Inner")
    assert "no longer read" not in " ".join(sentences(changed(old, node("Foreign Scan"))))


def test_joins_of_different_tables_are_never_called_one_join() -> None:
    def joined(kind: str, third: str) -> dict[str, Any]:
        return node(kind, node("Nested Loop", scan("a"), scan("b"), Join_Type="Inner"), scan(third), Join_Type="Inner")

    assert "is now a" not in " ".join(sentences(changed(joined("Hash Join", "c"), joined("Merge Join", "d"))))


def test_a_subplan_of_another_alias_is_not_pulled_up() -> None:
    sub = scan("t", Alias="b", Parent_Relationship="InitPlan", Subplan_Name="InitPlan 1")
    old = scan("u", Filter="(u.x = (InitPlan 1).col1)", Plans=[sub])
    new = node("Nested Loop", scan("u"), scan("t", Alias="a"), Join_Type="Inner")
    assert ChangeKind.SUBPLAN_PULLED_UP not in kinds(changed(old, new))


def test_the_number_of_workers_is_not_a_number_of_executions() -> None:
    def parallel(workers: int) -> dict[str, Any]:
        return node("Gather", scan("t", Actual_Loops=workers + 1), Workers_Planned=2)

    assert changed(parallel(1), parallel(2)).level is PlanLevel.IDENTICAL


def test_planned_workers_belong_to_the_plan() -> None:
    def parallel(workers: int) -> dict[str, Any]:
        return node("Gather", scan("t"), Workers_Planned=workers)

    found = changed(parallel(2), parallel(1))
    assert (found.level, sentences(found)) == (PlanLevel.CONDITIONS, ["Workers Planned of Gather was 2, now 1"])


def test_an_estimate_is_not_judged_if_reading_stopped_early() -> None:
    def limited(rows: int) -> dict[str, Any]:
        return node("Limit", index_scan("t", "i", Plan_Rows=10_000, Actual_Rows=rows))

    assert ChangeKind.ESTIMATE not in kinds(changed(limited(10), limited(1000)))
    # A sort reads everything first.
    old, new = (node("Limit", node("Sort", limited(rows)["Plans"][0])) for rows in (10, 1000))
    assert ChangeKind.ESTIMATE in kinds(changed(old, new))


def test_conditions_without_their_table_do_not_move_between_tables() -> None:
    old = node("Append", scan("a", Filter="(x > 1)"), scan("b"))
    new = node("Append", scan("a"), scan("b", Filter="(x > 1)"))
    assert sentences(changed(old, new)) == ["a no longer has the Filter x > 1", "b has a new Filter: x > 1"]


def test_files_of_an_init_plan_are_not_those_of_the_node_that_runs_it() -> None:
    def tree(blocks: int) -> dict[str, Any]:
        sub = node(
            "Sort", scan("u"), Parent_Relationship="InitPlan", Subplan_Name="InitPlan 1", Temp_Written_Blocks=blocks
        )
        return scan("t", Filter="(t.x = (InitPlan 1).col1)", Plans=[sub], Temp_Written_Blocks=blocks)

    assert [change.node for change in changed(tree(0), tree(5)).changes if change.kind is ChangeKind.SPILL_NEW] == [
        "Sort"
    ]


def test_tests_of_subplans_are_compared_if_both_majors_print_them() -> None:
    def tree(test: str) -> dict[str, Any]:
        sub = scan("d", Parent_Relationship="SubPlan", Subplan_Name="SubPlan 1")
        return scan("c", Filter=test, Plans=[sub])

    first, second, old = "(ANY (c.y = (SubPlan 1).col1))", "(ANY (c.z = (SubPlan 1).col1))", "(SubPlan 1)"
    assert changed(tree(first), tree(second)).level is PlanLevel.CONDITIONS
    assert "ANY (c.z = (SubPlan 1).col1)" in " ".join(sentences(changed(tree(first), tree(second))))
    assert changed(tree(old), tree(second)).level is PlanLevel.IDENTICAL


def test_tables_of_different_schemas_are_different() -> None:
    found = changed(scan("t", Schema="one"), scan("t", Schema="other"))
    assert sentences(found) == ["Seq Scan on t (one) is now Seq Scan on t (other)"]
    assert changed(scan("t", Schema="one"), scan("t")).level is PlanLevel.IDENTICAL


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
            "the sides of Hash Join are swapped: the outer side was a, now b",
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
    assert plan(heap(node("BitmapOr", one, two))).root.conditions == {"Index Cond": ("(a = 1) OR (b = 2)",)}
    assert plan(heap(node("BitmapAnd", one, two))).root.conditions == {"Index Cond": ("a = 1", "b = 2")}
    assert sentences(changed(heap(one), heap(node("BitmapOr", one, two))))[0] == (
        "Bitmap Heap Scan using t_a on t is now Bitmap Heap Scan using BitmapOr(t_a, t_b) on t"
    )


def test_added_and_removed_conditions_are_reported_with_their_nodes() -> None:
    found = changed(scan("t", Filter="((a > 1) AND (b > 2))"), scan("t", Filter="((a > 1) AND (c > 3))"))
    assert found.level is PlanLevel.CONDITIONS
    assert sentences(found) == ["t no longer has the Filter b > 2", "t has a new Filter: c > 3"]


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
        (
            {"Temp_Written_Blocks": 5},
            {"Temp_Written_Blocks": 0},
            "Sort no longer writes temporary files (it wrote 5 blocks)",
        ),
        ({"Temp_Written_Blocks": 0}, {"Temp_Written_Blocks": 1}, "Sort now spills to temporary files (1 block)"),
    ],
)
def test_changed_behavior_is_reported(was: dict[str, Any], now: dict[str, Any], reported: str) -> None:
    found = changed(node("Sort", scan("t", Temp_Written_Blocks=0), **was), node("Sort", scan("t"), **now))
    assert found.level is PlanLevel.BEHAVIOUR
    assert sentences(found)[0].startswith(reported)


def test_facts_reported_by_only_one_major_are_ignored() -> None:
    reported = node("Sort", scan("t"), Sort_Method="quicksort", Temp_Written_Blocks=7)
    assert changed(node("Sort", scan("t")), reported).level is PlanLevel.IDENTICAL
    assert changed(reported, node("Sort", scan("t"))).level is PlanLevel.IDENTICAL


def test_a_node_that_never_ran_has_no_behavior() -> None:
    ran = node("Sort", scan("t"), Temp_Written_Blocks=3)
    assert ChangeKind.SPILL_GONE not in kinds(changed(ran, ran | {"Actual Loops": 0, "Temp Written Blocks": 0}))


def test_facts_of_a_single_parallel_process_are_ignored() -> None:
    def sorted_by(method: str) -> dict[str, Any]:
        return node("Gather", node("Sort", scan("t"), Sort_Method=method, Sort_Space_Type="Memory"))

    assert changed(sorted_by("quicksort"), sorted_by("top-N heapsort")).level is PlanLevel.IDENTICAL


def test_a_sort_on_disk_has_a_size_but_no_memory() -> None:
    in_memory = node("Sort", scan("t"), Sort_Space_Type="Memory", Sort_Space_Used=12_000)
    assert ChangeKind.MEMORY not in kinds(changed(in_memory, in_memory | {"Sort Space Type": "Disk"}))


def test_a_spill_is_reported_only_at_its_node() -> None:
    def tree(blocks: int) -> dict[str, Any]:
        spilled = {"Temp_Written_Blocks": blocks}
        return node("Aggregate", node("Sort", scan("t", Temp_Written_Blocks=0), **spilled), **spilled)

    assert sentences(changed(tree(9), tree(0))) == ["Sort no longer writes temporary files (it wrote 9 blocks)"]


@pytest.mark.parametrize(
    ("op", "was", "now"),
    [
        ("Hash", {"Peak_Memory_Usage": 12_000}, {"Peak_Memory_Usage": 3_000}),
        (
            "Sort",
            {"Sort_Space_Type": "Memory", "Sort_Space_Used": 12_000},
            {"Sort_Space_Type": "Memory", "Sort_Space_Used": 3_000},
        ),
    ],
)
def test_different_memory_of_the_same_node_is_reported(op: str, was: dict[str, Any], now: dict[str, Any]) -> None:
    def tree(amounts: dict[str, Any], loops: int = 1) -> dict[str, Any]:
        return node(op, scan("t"), **amounts) | {"Actual Loops": loops}

    found = changed(tree(was), tree(now))
    assert (found.level, found.is_same_plan) == (PlanLevel.WORK, True)
    assert sentences(found) == [f"{op} used 12.3 MB of memory, now 3.07 MB"]
    assert changed(tree(was), tree(was)).level is PlanLevel.IDENTICAL
    # EXPLAIN reports one of several executions.
    assert ChangeKind.MEMORY not in kinds(changed(tree(was), tree(now, loops=3)))


@pytest.mark.parametrize(
    ("was", "now", "reported"),
    [
        ({"Actual_Loops": 100_000}, {"Actual_Loops": 1}, "Seq Scan on t ran 100 000 times, now once"),
        ({"Actual_Loops": 3}, {"Actual_Loops": 0}, "Seq Scan on t ran 3 times, now 0 times"),
        ({"Actual_Rows": 100}, {"Actual_Rows": 250}, "rows returned by Seq Scan on t: 100, now 250"),
        (
            {"Filter": "(a > 1)", "Rows_Removed_by_Filter": 250},
            {"Filter": "(a > 1)", "Rows_Removed_by_Filter": 0},
            "rows read and discarded by Seq Scan on t: 250, now 0",
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


@pytest.mark.parametrize(("rows", "more_rows"), [(1.0, 1.0), (1, 1.0), (1, 1)], ids=["18", "17 and 18", "17"])
def test_rows_removed_in_each_loop_are_whole_numbers_on_every_major(rows: float, more_rows: float) -> None:
    # EXPLAIN prints 0 for 490 rows removed in 1,000 loops, and 1 for 510.
    few = scan("t", Actual_Rows=rows, Actual_Loops=1000, Rows_Removed_by_Filter=0, Rows_Removed_by_Index_Recheck=0)
    more = scan("t", Actual_Rows=more_rows, Actual_Loops=1000, Rows_Removed_by_Filter=1)
    most = scan(
        "t", Actual_Rows=more_rows, Actual_Loops=1000, Rows_Removed_by_Filter=1, Rows_Removed_by_Index_Recheck=1
    )
    assert changed(few, more).level is PlanLevel.IDENTICAL
    assert changed(few, most).level is PlanLevel.IDENTICAL
    assert changed(few, {**most, "Rows Removed by Filter": 2}).level is PlanLevel.WORK


def joined(one: str, other: str, *, starts_with_one: bool) -> dict[str, Any]:
    """Return a join of a table with itself, which reads its sides in either order."""
    if starts_with_one:
        outer = scan("orders", Alias=one, Filter=f"({one}.a = 5)")
        inner = index_scan("orders", "parent_idx", Alias=other, Index_Cond=f"({other}.parent = {one}.id)")
    else:
        outer = scan("orders", Alias=other)
        inner = index_scan(
            "orders", "pkey", Alias=one, Index_Cond=f"({one}.id = {other}.parent)", Filter=f"({one}.a = 5)"
        )
    return node("Nested Loop", outer, inner)


def test_numbered_aliases_of_a_statement_are_its_own() -> None:
    letters = changed(joined("x", "y", starts_with_one=True), joined("x", "y", starts_with_one=False))
    numbered = changed(joined("o_1", "o_2", starts_with_one=True), joined("o_1", "o_2", starts_with_one=False))
    assert letters.level is numbered.level is PlanLevel.OPERATORS
    renamed = [text.replace("o_1", "x").replace("o_2", "y") for text in sentences(numbered)]
    assert renamed == list(sentences(letters))


def test_aliases_numbered_by_postgresql_are_compared_without_their_numbers() -> None:
    def repeated(first: str, second: str) -> dict[str, Any]:
        return node("Nested Loop", scan("t", Alias=first), scan("t", Alias=second, Filter=f"({second}.k = 1)"))

    def partitioned(number: int) -> dict[str, Any]:
        below = scan("part_b", Alias=f"p_{number}", Filter=f"(p_{number}.k = 1)")
        return node("Append", {**node("Result", below), "Parent Relationship": "Member"})

    assert changed(repeated("t", "t_1"), repeated("t", "t_2")).level is PlanLevel.IDENTICAL
    assert changed(repeated("a", "a_1"), repeated("a", "a_2")).level is PlanLevel.IDENTICAL
    assert changed(partitioned(1), partitioned(3)).level is PlanLevel.IDENTICAL


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # FROM p, up to 12 and from 13 on; FROM p x.
        (("part_1", "part_2", "part_1"), ("p_1", "p_2", "p")),
        (("x", "x_1", "x"), ("x_1", "x_2", "x")),
    ],
)
def test_partitions_are_equal_under_the_names_that_any_major_gives_them(
    old: tuple[str, str, str], new: tuple[str, str, str]
) -> None:
    def ordered(first: str, second: str, above: str) -> dict[str, Any]:
        parts = (
            {**scan(f"part_{number}", Alias=alias, Filter=f"({alias}.k = 1)"), "Parent Relationship": "Member"}
            for number, alias in enumerate((first, second), start=1)
        )
        return node("Sort", node("Append", *parts), Sort_Key=[f"{above}.k"])

    assert changed(ordered(*old), ordered(*new)).level is PlanLevel.IDENTICAL
    assert changed(ordered(*old), ordered(new[0], new[1], "q")).level is not PlanLevel.IDENTICAL


def test_a_table_that_has_the_name_of_a_partition_as_its_alias_is_not_mistaken_for_it() -> None:
    def joined_with(filtered: str) -> dict[str, Any]:
        part = {**scan("part_1", Alias="p_1", Filter=f"({filtered}.k = 1)"), "Parent Relationship": "Member"}
        return node("Nested Loop", scan("t", Alias="part_1"), node("Append", part))

    assert changed(joined_with("p_1"), joined_with("part_1")).level is not PlanLevel.IDENTICAL


@pytest.mark.parametrize(
    ("value", "text"), [(100_000, "100 000"), (25.5, "26"), (2.555, "2.56"), (0.00001, "0.00001"), ("x", "x")]
)
def test_numbers_in_plans_have_no_exponent(value: object, text: str) -> None:
    assert number(value) == text


def test_similar_changes_are_summarized() -> None:
    def partitions(kind: str) -> dict[str, Any]:
        return node("Append", *(scan(f"part_{number}", kind) for number in range(20)))

    reported = sentences(changed(partitions("Seq Scan"), partitions("Index Only Scan")))
    assert reported[2:] == ["Seq Scan on part_2 is now Index Only Scan on part_2", "... and 17 more like these"]


def test_time_is_split_into_nodes_that_changed_and_those_that_did_not() -> None:
    old = node("Limit", node("Sort", scan("t", Actual_Total_Time=10.0), Actual_Total_Time=50.0), Actual_Total_Time=51.0)
    new = node("Limit", scan("t", Actual_Total_Time=12.0), Actual_Total_Time=12.5)
    found = difference(plan(old, **{"Execution Time": 53.0}), plan(new, **{"Execution Time": 14.0}))
    assert found.time is not None
    assert found.time.changed.seconds == pytest.approx(-0.040)
    assert found.time.unchanged.seconds == pytest.approx(0.002 - 0.0005)
    assert found.time.unexplained.seconds == pytest.approx(-0.0005)


def test_serialization_time_is_not_part_of_the_plan() -> None:
    old, new = scan("t", Actual_Total_Time=10.0), scan("t", Actual_Total_Time=10.0)
    serialized = {"Execution Time": 24.0, "Serialization": {"Time": 13.8}}
    found = difference(plan(old, **{"Execution Time": 10.2}), plan(new, **serialized))
    assert found.time is not None
    assert found.time.unexplained.seconds == pytest.approx(0.0)


def test_a_change_in_time_within_the_spread_of_several_executions_is_noise() -> None:
    def runs(*times: float) -> Plan:
        first, *others = (plan(scan("t", Actual_Total_Time=time), **{"Execution Time": time}) for time in times)
        return replace(first, reruns=tuple(others))

    noise = difference(runs(11.0, 10.0, 13.0), runs(12.0, 10.0, 14.0)).time
    found = difference(runs(11.0, 10.0, 13.0), runs(42.0, 40.0, 44.0)).time
    assert noise is not None
    assert found is not None
    assert (noise.unchanged.is_noise, found.unchanged.is_noise) == (True, False)
    assert found.unchanged.seconds == pytest.approx(0.042 - 0.034 / 3)
    # Student's t with the degrees of freedom of Welch and Satterthwaite, from variances of 2.333 and 4.
    freedom = (7 / 3 + 4) ** 2 / ((7 / 3) ** 2 + 4**2) * 2
    assert found.unchanged.error_s == pytest.approx(
        stats.t.ppf(0.975, freedom) * math.sqrt((7 / 3 + 4) / 3) / 1000, rel=1e-9
    )


def test_an_execution_with_another_plan_does_not_count() -> None:
    first, again = scan("t", Actual_Total_Time=10.0), scan("t", Actual_Total_Time=12.0)
    other = index_scan("t", "t_a", Actual_Total_Time=90.0)
    old = replace(plan(first), reruns=(plan(other),))
    found = difference(old, replace(plan(again), reruns=(plan(again),))).time
    assert found is not None
    assert found.unchanged.seconds == pytest.approx(0.002)
    assert found.unchanged.error_s is None


def test_time_below_a_gather_is_part_of_its_time() -> None:
    def parallel(each: float, whole: float) -> dict[str, Any]:
        below = scan("t", Actual_Loops=3, Actual_Total_Time=each)
        return node("Gather", below, Actual_Total_Time=whole, Workers_Planned=2)

    old, new = (
        plan(parallel(each, whole), **{"Execution Time": whole}) for each, whole in ((38.0, 40.0), (19.0, 20.0))
    )
    found = difference(old, new).time
    assert found is not None
    assert found.unchanged.seconds == pytest.approx(-0.020)
    assert found.unexplained.seconds == pytest.approx(0.0)


def test_the_time_of_an_init_plan_counts_once() -> None:
    def tree(of_sub: float) -> dict[str, Any]:
        sub = scan("u", Parent_Relationship="InitPlan", Subplan_Name="InitPlan 1", Actual_Total_Time=of_sub)
        return scan("t", Filter="(t.x = (InitPlan 1).col1)", Plans=[sub], Actual_Total_Time=of_sub + 1.0)

    found = difference(plan(tree(10.0), **{"Execution Time": 11.0}), plan(tree(30.0), **{"Execution Time": 31.0})).time
    assert found is not None
    assert found.unchanged.seconds == pytest.approx(0.020)
    assert found.unexplained.seconds == pytest.approx(0.0)


def _with_init_plan(user: dict[str, Any], *above: str) -> dict[str, Any]:
    """Return a plan with an InitPlan of 10 ms at its top node. user: a node below."""
    inside = scan("v", Actual_Total_Time=10.0)
    sub = node("Sort", inside, Parent_Relationship="InitPlan", Subplan_Name="InitPlan 1", Actual_Total_Time=10.0)
    root = user
    for kind in above:
        root = node(kind, root, Actual_Total_Time=11.0, Workers_Planned=1)
    return root | {"Plans": [sub, *root.get("Plans", [])]}


_USE = "(t.x = (InitPlan 1).col1)"


@pytest.mark.parametrize(
    "root",
    [
        # The Gather has the result before its workers begin.
        _with_init_plan(scan("t", Filter=_USE, Actual_Loops=2, Actual_Total_Time=1.0), "Gather"),
        _with_init_plan(scan("t", Filter=_USE, Actual_Loops=3, Actual_Total_Time=9.0), "Gather"),
        # In a select list, which is not printed.
        _with_init_plan(scan("t", Actual_Total_Time=11.0), "Sort"),
        _with_init_plan(scan("t", Actual_Total_Time=1.0), "Result"),
        # The Append has the result before it chooses what to read.
        _with_init_plan(scan("p2", Filter=_USE, Actual_Loops=0), "Append"),
        # A LIMIT is reached before the second partition is read.
        _with_init_plan(scan("p1", Filter=_USE, Actual_Total_Time=11.0), "Append", "Limit"),
    ],
)
def test_the_time_of_an_init_plan_counts_once_whichever_node_runs_it(root: dict[str, Any]) -> None:
    found = plan(root)
    times = {one.relation: work.time_s for one, work in zip(found.nodes, own(found), strict=True)}
    assert times.pop("v") == pytest.approx(0.010)
    assert sum(work.time_s or 0.0 for work in own(found)) == pytest.approx(0.011, rel=0.01)


def test_the_time_of_a_node_that_spilled_is_that_of_a_changed_node() -> None:
    old, new = (
        node("Sort", scan("t"), Temp_Written_Blocks=blocks, Actual_Total_Time=time)
        for blocks, time in ((9, 50.0), (0, 20.0))
    )
    found = changed(old, new)
    assert found.time is not None
    assert found.time.changed.seconds == pytest.approx(-0.030)


def test_the_work_of_a_cte_is_subtracted_from_its_scans() -> None:
    def tree(of_cte: float, of_scan: float) -> dict[str, Any]:
        cte = scan("t", Parent_Relationship="InitPlan", Subplan_Name="CTE c", Actual_Total_Time=of_cte)
        reader = node("CTE Scan", CTE_Name="c", Alias="c", Actual_Total_Time=of_scan, Parent_Relationship="Outer")
        return node("Aggregate", Plans=[cte, reader], Actual_Total_Time=of_scan + 1.0)

    found = changed(tree(10.0, 12.0), tree(30.0, 32.0))
    assert found.time is not None
    # Only the scan of t became slower; no value is negative.
    assert found.time.unchanged.seconds == pytest.approx(0.020)


def test_plans_without_execution_have_no_time() -> None:
    estimated = {"Node Type": "Seq Scan", "Relation Name": "t", "Plan Rows": 5}
    found = changed(estimated, estimated | {"Node Type": "Index Scan"})
    assert (found.level, found.time) == (PlanLevel.OPERATORS, None)
    assert found.fingerprints[0].behaviour is None


def test_plans_that_differ_only_in_sorts_are_recognized() -> None:
    def tree(*, sort: bool, key: str = "t.a") -> dict[str, Any]:
        inner = scan("t", Filter=f"({key} > 1)")
        below = node("Sort", inner, Sort_Key=["t.a"]) if sort else inner
        return node("Nested Loop", node("Aggregate", below, Strategy="Hashed"), scan("u"), Join_Type="Inner")

    def are_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
        return is_same_but_for_sorts(plan(one), plan(other))

    assert are_same(tree(sort=True), tree(sort=False))
    assert are_same(tree(sort=False), tree(sort=False))
    assert not are_same(tree(sort=True), tree(sort=False, key="t.b"))
    assert not are_same(tree(sort=True), node("Limit", tree(sort=False)))


def test_every_kind_of_change_belongs_to_a_level() -> None:
    assert set(LEVEL_OF) == set(ChangeKind)


def test_blocks_of_different_sizes_are_compared_in_bytes() -> None:
    small = plan(scan("t", Shared_Hit_Blocks=4000, Shared_Read_Blocks=0))
    large = plan(scan("t", Shared_Hit_Blocks=1000, Shared_Read_Blocks=0))
    more = plan(scan("t", Shared_Hit_Blocks=2000, Shared_Read_Blocks=0))

    def compared(contender: Plan, *sizes: int | None) -> list[str]:
        return sentences(difference(replace(small, block_bytes=sizes[0]), replace(contender, block_bytes=sizes[1])))

    assert compared(large, 8192, 32768) == []
    assert compared(more, 8192, 32768) == ["total size of blocks accessed (hit or read): 32.8 MB, now 65.5 MB"]
    assert compared(large, 8192, None) == []
    for alike in ((None, None), (32768, 32768)):
        assert compared(large, *alike) == ["total blocks accessed (hit or read): 4 000, now 1 000"]


def modified(role: str, *below: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a plan that writes. role: of the nodes below, Member up to 13 and Outer since 14."""
    members = [{**one, "Parent Relationship": role} for one in below]
    return node("ModifyTable", *members, Operation="Update", Relation_Name="t", Alias="t", **more)


def test_a_plan_that_writes_is_the_same_before_and_since_14() -> None:
    found = changed(
        modified("Member", scan("t", Alias="x"), Plan_Rows=500, Actual_Rows=0),
        modified("Outer", scan("t", Alias="x"), Plan_Rows=0, Actual_Rows=0),
    )
    assert (found.level, found.changes) == (PlanLevel.IDENTICAL, ())
    # The members are partitions.
    parts = [scan("t_1"), scan("t_2")]
    assert changed(modified("Member", *parts), modified("Outer", *parts)).level is PlanLevel.OPERATORS


def of_init_plan(condition: str, name: str) -> dict[str, Any]:
    sub = scan("u", Parent_Relationship="InitPlan", Subplan_Name=name)
    return scan("t", Filter=condition, Plans=[sub])


def test_a_parameter_is_not_mistaken_for_the_result_of_an_init_plan() -> None:
    old = of_init_plan("((t.a = $1) AND (t.b = $1))", "InitPlan 1 (returns $1)")
    new = of_init_plan("((t.a = $1) AND (t.b = (InitPlan 1).col1))", "InitPlan 1")
    assert difference(plan(old), plan(new), parameters=1).level is PlanLevel.IDENTICAL
    # Without parameters, the result is known.
    assert (
        changed(
            of_init_plan("(t.b = $0)", "InitPlan 1 (returns $0)"),
            of_init_plan("(t.b = (InitPlan 1).col1)", "InitPlan 1"),
        ).level
        is PlanLevel.IDENTICAL
    )
    other = of_init_plan("((t.a = $1) AND (t.c = (InitPlan 1).col1))", "InitPlan 1")
    assert difference(plan(old), plan(other), parameters=1).level is PlanLevel.CONDITIONS


@pytest.mark.parametrize(
    ("until_13", "since_14"),
    [
        ("(timezone('UTC'::text, t.at) > now())", "((t.at AT TIME ZONE 'UTC'::text) > now())"),
        ("(btrim(t.a) = 'TRIM(x)'::text)", "(TRIM(BOTH FROM t.a) = 'TRIM(x)'::text)"),
        ("(ltrim(t.a, 'x'::text) = t.b)", "(TRIM(LEADING 'x'::text FROM t.a) = t.b)"),
        ("(\"position\"(t.a, 'x'::text) > 0)", "(POSITION(('x'::text) IN (t.a)) > 0)"),
        ('("substring"(t.a, 1, 2) = t.b)', "(SUBSTRING(t.a FROM 1 FOR 2) = t.b)"),
        ("(\"overlay\"(t.a, 'x'::text, 1) = t.b)", "(OVERLAY(t.a PLACING 'x'::text FROM 1) = t.b)"),
        (
            "(timezone('CET'::text, timezone('UTC'::text, t.at)) > now())",
            "(((t.at AT TIME ZONE 'UTC'::text) AT TIME ZONE 'CET'::text) > now())",
        ),
    ],
)
def test_calls_in_the_syntax_of_the_standard_are_the_same_calls(until_13: str, since_14: str) -> None:
    assert changed(scan("t", Filter=until_13), scan("t", Filter=since_14)).level is PlanLevel.IDENTICAL
    assert changed(
        scan("t", Filter=until_13), scan("t", Filter=since_14.replace("t.a", "t.z").replace("t.at", "t.z"))
    ).changes


def test_an_estimate_of_a_node_that_ran_several_times_is_one_per_execution() -> None:
    old = node("Nested Loop", scan("a"), scan("b", Actual_Loops=100, Actual_Rows=1), Join_Type="Inner")
    new = node("Nested Loop", scan("a"), scan("b", Actual_Loops=100, Actual_Rows=10), Join_Type="Inner")
    assert (
        "rows of Seq Scan on b, per execution: estimated 1, actual 1; now estimated 1, actual 10 (10x off)"
        in sentences(changed(old, new))
    )


def test_facts_of_plans_that_were_not_executed_are_not_compared() -> None:
    def planned(partitions: int) -> dict[str, Any]:
        below = {name: value for name, value in scan("t").items() if not name.startswith("Actual")}
        one = node("Aggregate", below, Strategy="Hashed", Group_Key=["t.a"], Planned_Partitions=partitions)
        return {name: value for name, value in one.items() if not name.startswith("Actual")}

    assert changed(planned(4), planned(0)).level is PlanLevel.IDENTICAL


def test_only_nodes_with_temporary_files_of_their_own_spill() -> None:
    # A function in its filter has written them.
    old, new = scan("t", Temp_Written_Blocks=0), scan("t", Temp_Written_Blocks=500)
    assert changed(old, new).level is PlanLevel.IDENTICAL
    old, new = (node("Sort", scan("t"), Sort_Key=["a"], Temp_Written_Blocks=blocks) for blocks in (0, 500))
    assert kinds(changed(old, new)) == [ChangeKind.SPILL_NEW]


def test_a_set_operation_may_not_read_its_second_input_to_the_end() -> None:
    old = node("SetOp", scan("a"), scan("b", Plan_Rows=1000, Actual_Rows=1000), Strategy="Sorted", Command="Except")
    new = node("SetOp", scan("a"), scan("b", Plan_Rows=1000, Actual_Rows=11), Strategy="Sorted", Command="Except")
    assert ChangeKind.ESTIMATE not in kinds(changed(old, new))


def test_tables_of_two_schemas_are_told_apart() -> None:
    def join(*sides: tuple[str, str, str]) -> dict[str, Any]:
        scans = [scan("orders", kind, Schema=schema, Alias=alias) for kind, schema, alias in sides]
        return node("Nested Loop", *scans, Join_Type="Inner")

    old = join(("Seq Scan", "sales", "orders"), ("Seq Scan", "archive", "orders_1"))
    new = join(("Tid Scan", "archive", "orders_1"), ("Tid Scan", "sales", "orders"))
    access = [one for one in changed(old, new).changes if one.kind is ChangeKind.ACCESS]
    assert len(access) == 2
    assert all("(" not in f"{one.was}{one.now}" for one in access)


def test_the_number_of_runs_of_a_subplan_is_not_that_of_a_node_below_a_materialize() -> None:
    inner = node("Materialize", scan("d"), Parent_Relationship="SubPlan", Subplan_Name="SubPlan 1", Actual_Loops=10_000)
    old = scan("c", Filter="(NOT (SubPlan 1))", Plans=[inner])
    new = node("Hash Join", scan("c"), node("Hash", scan("d")), Join_Type="Anti", Hash_Cond="(c.x = d.x)")
    assert sentences(changed(old, new))[0] == "SubPlan 1 over d was pulled up into the main plan"


def test_counts_of_the_same_scan_are_compared() -> None:
    old, new = (index_scan("t", "i", Index_Searches=searches) for searches in (1, 4000))
    assert sentences(changed(old, new)) == ["Index Searches of Index Scan using i on t: 1, now 4 000"]
    assert changed(index_scan("t", "i"), new).level is PlanLevel.IDENTICAL


def test_the_statement_for_another_server_is_compared() -> None:
    old, new = (
        scan("f", "Foreign Scan", Schema="public", Remote_SQL=text)
        for text in ("SELECT a FROM f", "SELECT a FROM f LIMIT 1")
    )
    assert sentences(changed(old, new)) == [
        "Remote SQL of Foreign Scan on f was SELECT a FROM f, now SELECT a FROM f LIMIT 1"
    ]
    # Printed with VERBOSE only.
    assert changed(old, scan("f", "Foreign Scan")).level is PlanLevel.IDENTICAL


def test_a_plan_with_removed_partitions_is_not_called_custom() -> None:
    append = {"Node Type": "Append", "Plan Rows": 1, "Subplans Removed": 2}
    generic_plan = scan("t", Filter="(t.a = $1)")
    assert ChangeKind.GENERIC not in kinds(difference(plan(generic_plan), plan(append), parameters=1))


def test_the_rounding_of_many_short_executions_is_not_a_change() -> None:
    def run(ms: float, filter_text: str) -> Plan:
        inner = scan("b", Actual_Loops=1_000_000, Actual_Total_Time=ms, Filter=filter_text)
        root = node("Nested Loop", scan("a"), inner, Join_Type="Inner", Actual_Total_Time=3000.0)
        return plan(root, **{"Execution Time": 3000.0})

    old, new = (
        replace(run(*arguments), reruns=(run(*arguments),)) for arguments in ((0.001, "(a = 1)"), (0.002, "(a = 2)"))
    )
    time = difference(old, new).time
    assert time is not None
    assert time.changed.seconds == pytest.approx(1.0)
    assert time.changed.is_noise


def test_rows_of_workers_that_remove_equal_ones_depend_on_their_number() -> None:
    def plan_with(workers: int) -> dict[str, Any]:
        below = node("Unique", scan("t"), Actual_Loops=workers + 1, Actual_Rows=10)
        return node("Unique", node("Gather Merge", below, Actual_Rows=10 * (workers + 1), Workers_Planned=2))

    assert ChangeKind.ROWS not in kinds(changed(plan_with(2), plan_with(1)))


def test_amounts_within_those_of_other_executions_are_not_changes() -> None:
    def runs(*blocks: int) -> Plan:
        first, *others = (plan(scan("t", Shared_Hit_Blocks=number)) for number in blocks)
        return replace(first, reruns=tuple(others))

    assert difference(runs(12_000, 24_000, 13_000), runs(20_000, 12_500, 21_000)).level is PlanLevel.IDENTICAL
    assert difference(runs(12_000, 14_000, 13_000), runs(20_000, 22_500, 21_000)).level is PlanLevel.WORK
    small = replace(runs(12_000, 24_000, 13_000), block_bytes=8192)
    large = replace(runs(10_000, 6_200, 10_500), block_bytes=16384)
    assert difference(small, large).level is PlanLevel.IDENTICAL


def test_blocks_of_different_numbers_of_workers_are_not_compared() -> None:
    def gathered(processes: int) -> dict[str, Any]:
        below = scan("t", Actual_Loops=processes, Shared_Hit_Blocks=1000)
        return node("Gather", below, Shared_Hit_Blocks=1000 * processes, Workers_Planned=2)

    assert ChangeKind.BLOCKS not in kinds(changed(gathered(3), gathered(2)))
    assert ChangeKind.BLOCKS in kinds(changed(gathered(3), scan("t", "Index Scan", Shared_Hit_Blocks=98)))


def test_products_of_rounded_rows_are_about_right() -> None:
    def inner(rows: int) -> dict[str, Any]:
        below = scan("b", Actual_Loops=100, Actual_Rows=rows)
        return node("Nested Loop", scan("a"), below, Join_Type="Inner")

    assert "rows returned by Seq Scan on b: about 1 000, now about 5 000" in sentences(changed(inner(10), inner(50)))
