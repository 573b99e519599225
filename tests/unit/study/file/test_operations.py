import hashlib

import pytest

from pgversus.study.comparison import Comparison
from pgversus.study.dataset import Dataset, SetupFile
from pgversus.study.metrics import Metric
from pgversus.study.workload import Operation, PgbenchWorkload, Step
from tests.unit.study.file.reading import SHORT, labels, problem, problems, study

VACUUM = SHORT.replace('script = "query.sql"', 'operation = "VACUUM t;"')
STEPS = SHORT.replace(
    'script = "query.sql"',
    """steps = [
  { name = "index", sql = "CREATE INDEX ON t (a)" },
  { command = "pg_dump -Fc -f '/tmp/a b'" },
  { command = "pg_dump" },
]""",
)
SEVERAL = SHORT.replace('[workload]\nscript = "query.sql"\n', "")


def only(text: str) -> Comparison:
    (context,) = study(text).contexts
    return context.comparison


def inline(name: str, sql: str) -> SetupFile:
    return SetupFile(path=f"{name} inline", sha256=hashlib.sha256(sql.encode()).hexdigest(), text=sql)


def test_an_sql_operation_is_compared_by_time() -> None:
    found = only(VACUUM)
    steps = (Step(name="VACUUM t", sql="VACUUM t;"),)
    assert found.workload == Operation(name="VACUUM t", steps=steps)
    assert (found.design.metric, found.design.margin) == (Metric.TIME, 0.05)
    assert (found.design.rounds, found.design.warm_up_s) == (1, 0.0)
    assert found.dataset == Dataset()


def test_a_program_is_an_operation() -> None:
    found = only(SHORT.replace('script = "query.sql"', 'command = "pg_dump -f db.sql"')).workload
    assert isinstance(found, Operation)
    assert found.steps == (Step(name="pg_dump", program=("pg_dump", "-f", "db.sql")),)


def test_steps_run_in_order_with_unique_names() -> None:
    found = only(STEPS).workload
    assert isinstance(found, Operation)
    assert found.steps == (
        Step(name="index", sql="CREATE INDEX ON t (a)"),
        Step(name="pg_dump", program=("pg_dump", "-Fc", "-f", "/tmp/a b")),
        Step(name="pg_dump (2)", program=("pg_dump",)),
    )
    assert found.name == "index, pg_dump, pg_dump (2)"


def test_prepare_runs_on_the_data_of_each_arm() -> None:
    text = (
        f'{VACUUM}prepare = ["dirty.sql"]\nprepare_sql = "ANALYZE"\nverify = "SELECT true"\nvariables = {{dead = 3}}\n'
    )
    found = only(f"{text}[dataset]\nscale = 10\n")
    dirty = SetupFile(path="/studies/dirty.sql", sha256=hashlib.sha256(b"SELECT 'dirty.sql';").hexdigest())
    assert found.dataset == Dataset(
        pgbench_scale=10, prepare=(dirty, inline("workload prepare", "ANALYZE")), variables=(("dead", "3"),)
    )
    assert isinstance(found.workload, Operation)
    assert found.workload.verify == ("SELECT true",)


def test_an_operation_has_the_name_of_its_table() -> None:
    text = SEVERAL + '[workloads.a]\noperation = "VACUUM t"\n[workloads.b]\noperation = "ANALYZE t"\n'
    assert [context.comparison.workload.name for context in study(text).contexts] == ["a", "b"]
    assert [label for label, _ in labels(text)] == ["workload=a", "workload=b"]


def test_loads_and_operations_may_share_a_file_but_not_a_context() -> None:
    text = SEVERAL + '[workloads.a]\noperation = "VACUUM t"\n[workloads.b]\nsql = "SELECT 1"\n[load]\nclients = 4\n'
    vacuum, select = (context.comparison for context in study(text).contexts)
    assert (vacuum.design.metric, select.design.metric) == (Metric.TIME, Metric.TPS)
    assert isinstance(select.workload, PgbenchWorkload)
    assert select.workload.clients == 4
    compared = problem('compare = "workload"\n' + text)
    assert (compared.slug, compared.what) == ("study-file-conflict", "a load cannot be compared with an operation")
    loads = problem(text.replace("[load]", "[loads.c1]\n[loads.c4]"))
    assert loads.slug == "study-file-conflict"
    assert "once for every load" in loads.what


@pytest.mark.parametrize(
    ("text", "slug", "where", "found"),
    [
        (
            f'{SHORT}operation = "VACUUM"\n',
            "study-file-conflict",
            "line 6, [workload] operation",
            "script and operation",
        ),
        (f'{VACUUM}command = "x"\n', "study-file-conflict", "line 6, [workload] command", "operation and command"),
        (f'{VACUUM}rewrite = "x"\n', "study-no-rewrite", "line 6, [workload] rewrite", "a workload with operation"),
        (f'{SHORT}prepare_sql = "x"\n', "study-no-operation", "line 6, [workload] prepare_sql", "prepare_sql"),
        (f'{SHORT}prepare = ["x"]\n', "study-no-operation", "line 6, [workload] prepare", "prepare"),
        (f'{SHORT}verify = "x"\n', "study-no-operation", "line 6, [workload] verify", "verify"),
        (f"{VACUUM}variables = {{a = 1}}\n", "study-idle-variables", "line 6, [workload] variables", None),
        (f"{VACUUM}[load]\n", "study-file-conflict", "line 6, [load]", None),
        (f"{VACUUM}[loads.c4]\nclients = 4\n", "study-file-conflict", "line 6, [loads.c4]", None),
        (f'{VACUUM}[design]\nmetric = "tps"\n', "study-metric-of-other-kind", "line 7, [design] metric", "tps"),
        (f'{SHORT}[design]\nmetric = "time"\n', "study-metric-of-other-kind", "line 7, [design] metric", "time"),
        (f"{VACUUM}[design]\nwindows = 4\n", "study-windows-of-operation", "line 7, [design] windows", "windows"),
        (f'{VACUUM}[design]\nwindow = "2s"\n', "study-windows-of-operation", "line 7, [design] window", "window"),
        (f'{VACUUM}[design]\nwarm_up = "2s"\n', "study-windows-of-operation", "line 7, [design] warm_up", "warm_up"),
        (VACUUM.replace("VACUUM t;", " ; "), "study-bad-statement", "line 5, [workload] operation", None),
        (f'{VACUUM}verify = "\\\\d"\n', "study-bad-statement", "line 6, [workload] verify", None),
        (
            VACUUM.replace('operation = "VACUUM t;"', 'command = "a \'b"'),
            "study-bad-command",
            "line 5, [workload] command",
            None,
        ),
        (
            STEPS.replace('{ command = "pg_dump" }', '{ name = "index", command = "pg_dump" }'),
            "study-file-conflict",
            "line 8, [workload] steps, item 3, name",
            '"index" again',
        ),
        (
            STEPS.replace('{ command = "pg_dump" }', '{ name = "x" }'),
            "study-file-missing-key",
            "line 8, [workload] steps, item 3",
            "none of sql, command",
        ),
        (
            STEPS.replace('{ command = "pg_dump" }', '{ sql = "x", command = "pg_dump" }'),
            "study-file-conflict",
            "line 8, [workload] steps, item 3, command",
            "sql and command",
        ),
        (f'{VACUUM}prepare = ["missing.sql"]\n', "study-no-file", "line 6, [workload] prepare, item 1", None),
        (VACUUM.replace("operation", "operatoin"), "study-file-unknown-key", "line 5, [workload] operatoin", None),
    ],
)
def test_mistakes_in_operations_are_reported_with_their_lines(
    text: str, slug: str, where: str, found: str | None
) -> None:
    reported = problem(text)
    assert (reported.slug, reported.where) == (slug, f"planner.toml, {where}")
    assert found is None or reported.found == found
    assert all((reported.found, reported.expected, reported.to_do))


def test_all_mistakes_are_reported_at_once() -> None:
    text = VACUUM.replace("VACUUM t;", ";") + 'prepare = ["missing"]\n[load]\n[design]\nwindows = 3\n'
    assert {one.slug for one in problems(text)} >= {"study-bad-statement", "study-no-file"}
    wrong = f'{VACUUM}verify = ";"\n[load]\n[design]\nwindows = 3\nwindow = "1s"\n'
    assert [one.slug for one in problems(wrong)] == [
        "study-bad-statement",
        "study-file-conflict",
        "study-windows-of-operation",
        "study-windows-of-operation",
    ]
