"""Plans on real servers: changes between majors are described, writes are rolled back, nothing is left over."""

import re
from pathlib import Path
from typing import Any

import pytest

from pgversus.lab.studies import library
from pgversus.statements.statement import Sample
from pgversus.text.sql import quoted
from tests.live.conftest import EXAMPLES, CommandLine
from tests.recorded_shop import SHOP, shop_statements

OLDEST, OLD, NEW = "12.22", "16.12", "17.8"
PLANNER, VERSIONS = library() / "planner-16-vs-17", library() / "versions-15-to-18"


def plans(line: CommandLine, *arguments: str) -> dict[str, Any]:
    ended = line.run("plans", *arguments, "--json")
    assert ended.code == 0, ended.stderr
    assert line.leftovers() == []
    return ended.document


def only(document: dict[str, Any]) -> dict[str, Any]:
    (one,) = document["comparisons"]
    found: dict[str, Any] = one
    return found


@pytest.mark.parametrize(
    ("case", "data", "settings", "undone_by", "reported"),
    [
        (
            "cte_in",
            "cte",
            (),
            {"enable_hashjoin": "off", "enable_mergejoin": "off"},
            [
                "Nested Loop is now a Merge Semi Join",
                "cte1.id = t_cte_a.id moved from Index Cond of Index Only Scan using t_cte_a_pkey on t_cte_a to",
                "Index Only Scan using t_cte_a_pkey on t_cte_a ran 100 000 times, now once",
            ],
        ),
        (
            "correlated_in",
            "correlated",
            (),
            None,
            [
                "SubPlan 1 over t_corr_d d was pulled up into the main plan: it ran 10 000 times, now once",
                "new: Hash Join (Hash Cond: c.c1 = d.c1 AND c.c2 = d.c2)",
                "rows read and discarded by Seq Scan on t_corr_d d: about 250 000, now 0",
            ],
        ),
        (
            "group_by_order",
            "group_by",
            ("--set", "enable_hashagg=off", "--set", "max_parallel_workers_per_gather=0"),
            {"enable_group_by_reordering": "off"},
            [
                "Seq Scan on t_grp is now Index Only Scan using t_grp_k1_k2_k3_idx on t_grp",
                "Sort (Sort Key: t_grp.k3, t_grp.k2, t_grp.k1) was removed: the order now comes from index",
                "t_grp.k1, now t_grp.k1, t_grp.k2, t_grp.k3: same columns, different order",
            ],
        ),
        (
            "range_contains",
            "range",
            (),
            # The transformation of this condition in 17 cannot be disabled.
            None,
            [
                "Seq Scan on t_range is now Index Only Scan using t_range_ts_idx on t_range",
                "has a new Index Cond: t_range.ts > '-infinity'::timestamp without time zone",
            ],
        ),
    ],
)
def test_plan_changes_from_16_to_17_are_described(
    command_line: CommandLine,
    case: str,
    data: str,
    settings: tuple[str, ...],
    undone_by: dict[str, str] | None,
    reported: list[str],
) -> None:
    files = ("--setup", str(PLANNER / f"{data}.sql"), "-f", str(PLANNER / f"{case}.sql"))
    document = plans(command_line, OLD, NEW, *files, *settings)
    one = only(document)
    assert one["level"] == "operators"
    assert one["same_rows"] is True
    assert (one["undone_by"] and one["undone_by"]["settings"]) == undone_by
    # 17 knows that the rows of the CTE are sorted, and no setting makes it sort them again.
    assert (one["undone_by"] or {}).get("but_for_sorts", False) is (case == "cte_in")
    for text in reported:
        assert [sentence for sentence in one["sentences"] if text in sentence], one["sentences"]


def test_a_spill_that_disappears_does_not_change_the_plan(command_line: CommandLine) -> None:
    """GROUP BY on 15 and 18: hash_mem_multiplier is 2 on both, and 18 needs less memory per group."""
    script = str(VERSIONS / "group_by.sql")
    one = only(plans(command_line, "15.14", "18.0", "-i", "-s", "1", "-f", script, "--set", "work_mem=5MB"))
    assert (one["level"], one["same_plan"]) == ("behaviour", True)
    spills = [text for text in one["sentences"] if "temporary files" in text]
    assert [text.partition(" (")[0] for text in spills] == ["HashAggregate no longer writes temporary files"]


def test_variables_are_substituted_and_writes_are_rolled_back(command_line: CommandLine) -> None:
    document = plans(command_line, OLD, NEW, "-i", "-s", "1", "-b", "tpcb-like")
    statements = [one["statement"] for one in document["comparisons"]]
    assert [text.split(": ")[1].split()[0] for text in statements] == ["UPDATE", "SELECT", "UPDATE", "UPDATE", "INSERT"]
    assert not [text for text in statements if " :" in text.split(": ", 1)[1]]
    assert {one["same_plan"] for one in document["comparisons"]} == {True}
    # The same cluster again: if anything had been written, the row digests would differ.
    assert plans(command_line, OLD, NEW, "-i", "-s", "1", "-b", "tpcb-like")["warnings"] == document["warnings"]


def test_a_function_that_writes_is_executed_on_the_same_rows_each_time(command_line: CommandLine) -> None:
    setup = """CREATE TABLE made (id int PRIMARY KEY);
        CREATE FUNCTION make(int) RETURNS int LANGUAGE sql AS 'INSERT INTO made VALUES ($1) RETURNING id';"""
    script = command_line.write("make.sql", "BEGIN;\nSELECT make(1);\nROLLBACK;\n")
    document = plans(command_line, OLD, NEW, "--setup", command_line.write("setup.sql", setup), "-f", script)
    assert [one["same_rows"] for one in document["comparisons"]] == [True]


ROWS = {
    "SELECT a.aid FROM pgbench_accounts a JOIN pgbench_branches b USING (bid)": ("multiset", True),
    "SELECT aid, abalance FROM pgbench_accounts ORDER BY abalance, aid DESC NULLS LAST LIMIT 9": ("ordered", True),
    "SELECT abalance FROM pgbench_accounts a ORDER BY a.aid LIMIT 9": ("ordered", True),
    "SELECT aid, abalance FROM pgbench_accounts ORDER BY abalance": ("multiset", True),
    "SELECT bid, max(aid) FROM pgbench_accounts GROUP BY bid ORDER BY 1": ("ordered", True),
    "SELECT current_setting('enable_hashjoin'), min(aid) FROM pgbench_accounts": ("multiset", False),
    "SELECT * FROM by_chance": ("not comparable", None),
    "SELECT current_setting('enable_hashjoin') FROM pgbench_accounts ORDER BY bid LIMIT 9": ("not comparable", None),
    "SELECT current_setting('enable_hashjoin') FROM nullable ORDER BY n": ("multiset", False),
}


def test_levels_of_a_setting_are_arms_whose_rows_are_compared_in_order_if_the_order_is_total(
    command_line: CommandLine,
) -> None:
    command_line.write("view.sql", "CREATE VIEW by_chance AS SELECT random(); CREATE TABLE nullable (n int UNIQUE);")
    command_line.write("rows.sql", "".join(f"{text};\n" for text in ("INSERT INTO nullable VALUES (1)", *ROWS)))
    levels = ("--set", "enable_hashjoin=on,off", "--set", "enable_nestloop=off")
    document = plans(command_line, NEW, *levels, "-i", "-s", "1", "--setup", "view.sql", "-f", "rows.sql")
    _, join, *others = document["comparisons"]
    assert (join["baseline"], join["contender"]) == ("enable_hashjoin=on", "enable_hashjoin=off")
    assert "Hash Join is now a Merge Join" in join["sentences"]
    found = {one["statement"].split(": ", 1)[1]: (one["rows_compared"], one["same_rows"]) for one in (join, *others)}
    assert found == ROWS
    reasons = [reason for one in others for reason in one["rows_uncertain"]]
    assert reasons == [
        "random() is volatile: rows may differ by chance",
        "LIMIT 9 may return any of the rows that tie in the ORDER BY",
    ]


def test_different_rows_are_reported_before_any_plan(command_line: CommandLine) -> None:
    command_line.write("setting.sql", "SELECT current_setting('work_mem') AS x;")
    ended = command_line.run("plans", NEW, "--set", "work_mem=1MB,2MB", "-f", "setting.sql")
    assert ended.code == 0, ended.stderr
    assert ended.stdout.startswith(
        "caveat: the rows of work_mem=2MB differ from those of work_mem=1MB: setting.sql, statement 1"
    )


def test_statistics_that_differ_by_sampling_are_reported_and_full_statistics_do_not_differ(
    command_line: CommandLine,
) -> None:
    command_line.write(
        "many.sql",
        "CREATE TABLE many AS SELECT g, md5(g::text) AS t FROM generate_series(1, 100000) g;\n"
        "CREATE TABLE parts (g int, t text) PARTITION BY RANGE (g);\n"
        "CREATE TABLE part1 PARTITION OF parts FOR VALUES FROM (0) TO (30000);\n"
        "CREATE TABLE part2 PARTITION OF parts FOR VALUES FROM (30000) TO (200000);\n"
        "INSERT INTO parts SELECT * FROM many;",
    )
    command_line.write(
        "read.sql", "SELECT count(*) FROM many WHERE t < '5';\nSELECT count(*) FROM parts WHERE t < '5';"
    )
    arguments = (OLD, NEW, "--setup", "many.sql", "-f", "read.sql")
    unlike = plans(command_line, *arguments)["unlike_statistics"]
    # The smaller partition was read completely anyway.
    tables = ["public.many", "public.part2"]
    assert unlike == [{"labels": [OLD, NEW], "tables": tables, "cause": "sample", "may_be_full": True}]
    assert plans(command_line, *arguments, "--full-statistics")["unlike_statistics"] == []


def test_full_statistics_of_a_partitioned_table_are_equal_on_majors_that_count_its_rows_differently(
    command_line: CommandLine,
) -> None:
    """From 14 on, ANALYZE also sets the number of rows of the partitioned table itself."""
    command_line.write(
        "parts.sql",
        "CREATE TABLE parts (g int, t text) PARTITION BY RANGE (g);\n"
        "CREATE TABLE part1 PARTITION OF parts FOR VALUES FROM (0) TO (30000);\n"
        "CREATE TABLE part2 PARTITION OF parts FOR VALUES FROM (30000) TO (200000);\n"
        "INSERT INTO parts SELECT g, md5(g::text) FROM generate_series(1, 150000) g;",
    )
    # The plan of an INSERT names the partitioned table, that of a SELECT its partitions.
    command_line.write("both.sql", "SELECT count(*) FROM parts WHERE t < '5';\nINSERT INTO parts VALUES (1, 'x');")
    arguments = (OLDEST, NEW, "--setup", "parts.sql", "-f", "both.sql", "--full-statistics")
    assert plans(command_line, *arguments)["unlike_statistics"] == []


def test_statements_without_a_plan_are_executed_for_later_ones(command_line: CommandLine) -> None:
    command_line.write(
        "many.sql",
        "CREATE TEMP TABLE x AS SELECT g FROM generate_series(1, 100) g; SET LOCAL enable_seqscan = off;\n"
        "PREPARE p (int) AS SELECT * FROM x WHERE g = $1; EXECUTE p(5);\n"
        "DECLARE c CURSOR FOR SELECT * FROM x; FETCH 5 FROM c; COMMIT; VALUES (1), (2);",
    )
    document = plans(command_line, OLDEST, NEW, "-f", "many.sql")
    assert [one["statement"].split(": ")[1].split()[0] for one in document["comparisons"]] == [
        "CREATE",
        "EXECUTE",
        "DECLARE",
        "VALUES",
    ]
    assert {one["settings"][1].get("enable_seqscan") for one in document["comparisons"][1:]} == {"off"}
    command_line.write("none.sql", "SET LOCAL work_mem = '1MB';")
    assert command_line.run("plans", OLD, NEW, "-f", "none.sql").stdout == "no statement has a plan\n"


def test_statements_that_cannot_be_explained_are_reported_with_the_servers_message(command_line: CommandLine) -> None:
    command_line.write("wrong.sql", "SELECT nothing FROM nowhere;")
    ended = command_line.run("plans", OLD, NEW, "-f", "wrong.sql")
    assert ended.code == 4
    assert "error[workload-statements-unknown]" in ended.stderr
    assert 'relation "nowhere" does not exist' in ended.stderr
    assert command_line.leftovers() == []


def test_plans_can_be_written_as_markdown_in_japanese(command_line: CommandLine, tmp_path: Path) -> None:
    files = ("--setup", str(EXAMPLES / "correlated.sql"), "-f", str(EXAMPLES / "correlated_in.sql"))
    ended = command_line.run(
        "plans", OLD, NEW, *files, "--format", "markdown", "--lang", "ja", "-o", str(tmp_path / "plans.md")
    )
    assert ended.code == 0, ended.stderr
    text = (tmp_path / "plans.md").read_text()
    assert "### " in text
    assert "t_corr_d d を読み込む SubPlan 1 が実行計画の本体に引き上げられた" in text.replace("\\", "")


SHOP_CHANGES = {
    "customers of each status": "aggregates with ORDER BY or DISTINCT take sorted input (16)",
    "order history as text": "the same",
    "product names of suppliers": "the same",
    "first and last order": "IS NOT NULL on columns that cannot be NULL is removed (17)",
    "orders with a customer": "the same",
    "large customers by cte": "the planner knows statistics of materialized CTEs (17)",
    "prices seen before": "a correlated IN becomes a join (17)",
    "stock in lists": "index scans on lists return rows in order (17)",
    "sessions of a minute": "skip scans (18)",
    "orders with a large line": "the same",
    "orders of each day": "the same",
    "heavy products by self join": "self joins on a unique key are removed (18)",
    "products by alternatives": "OR lists become arrays (18)",
    "products by values": "IN (VALUES ...) becomes an array (18)",
    "products with sales and reviews": "INTERSECT reads both inputs separately (18)",
    "products without sales by set": "EXCEPT does the same (18)",
    "customers who bought or wrote": "UNION may use sorted inputs (17)",
    "orders of each customer by name": "a unique column replaces the other columns of GROUP BY (18)",
}
"""The statements of the bundled shop whose plans change from 15 to 18, each with the change of PostgreSQL that does it.

EXPLAIN (COSTS OFF) prints exactly these plans differently, besides new forms of the same plan: names of windows, and
the columns of a hashed subplan.
"""


def shop_plans(line: CommandLine, folder: Path, old: str, new: str) -> dict[str, dict[str, Any]]:
    """Return the compared plans of the statements of the bundled shop, by name of the statement."""
    arguments = [old, new, "--setup", str(SHOP / "shop.sql"), "--full-statistics"]
    for one in shop_statements():
        script = folder / f"{one.name}.sql"
        script.write_text(f"{_with_literals(one.samples[0])};\n")
        arguments += ["-f", str(script)]
    found = plans(line, *arguments, "--set", "shared_buffers=256MB")["comparisons"]
    return {Path(one["statement"].partition(".sql, ")[0]).name: one for one in found}


@pytest.mark.long
def test_the_known_plan_changes_of_the_shop_are_found_and_no_others(command_line: CommandLine, tmp_path: Path) -> None:
    found = shop_plans(command_line, tmp_path, "15.14", "18.0")
    assert {name for name, one in found.items() if not one["same_plan"]} == SHOP_CHANGES.keys()
    # 18.0 loses a group of GROUPING SETS; later releases of 18 do not.
    assert [name for name, one in found.items() if one["same_rows"] is False] == ["revenue by grouping sets"]
    # Only a sort has gone, so no setting restores more than the plan of 18 itself.
    assert found["stock in lists"]["undone_by"] is None
    assert found["heavy products by self join"]["undone_by"]["settings"] == {"enable_self_join_elimination": "off"}


@pytest.mark.long
def test_nothing_changes_in_the_shop_between_equal_versions(command_line: CommandLine, tmp_path: Path) -> None:
    found = shop_plans(command_line, tmp_path, "17.8", "17.8")
    assert len(found) == len(shop_statements())
    assert all(one["same_plan"] for one in found.values())
    assert not [name for name, one in found.items() if one["same_rows"] is False]


def _with_literals(sample: Sample) -> str:
    literals = ["NULL" if value is None else quoted(value) for value in sample.values]
    return re.sub(r"\$(\d+)", lambda found: literals[int(found[1]) - 1], sample.text)
