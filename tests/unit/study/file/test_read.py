import hashlib

import pytest

from pgversus.errors import StudyFileError
from pgversus.study.comparison import CacheState
from pgversus.study.dataset import Dataset, SetupFile
from pgversus.study.design import WindowKind
from pgversus.study.file.read import read_study
from pgversus.study.metrics import Metric
from pgversus.study.servers import RunningServer, ServerName, parse_server
from pgversus.study.workload import PgbenchWorkload, QueryMode, Script
from tests.unit.study.file.reading import SEED, SHORT, find_dump, first_load, labels, problem, read_file, study


def test_a_short_file_uses_the_defaults_of_compare() -> None:
    found = study(SHORT)
    (context,) = found.contexts
    comparison = context.comparison
    assert (found.name, found.title, found.question, found.seed, found.budget_s) == (
        "planner",
        "Two servers",
        "",
        SEED,
        900.0,
    )
    assert (context.number, context.levels, comparison.factors, comparison.cache) == (
        1,
        (),
        ("server",),
        CacheState.WARM,
    )
    assert [(arm.index, arm.label, arm.server, arm.settings) for arm in comparison.arms] == [
        (0, "16.12", parse_server("16.12"), ()),
        (1, "17.8", parse_server("17.8"), ()),
    ]
    script = Script(name="query.sql", text="SELECT 'query.sql';")
    assert comparison.workload == PgbenchWorkload(scripts=(script,))
    assert comparison.dataset == Dataset()
    assert (comparison.design.metric, comparison.design.margin, comparison.design.seed) == (Metric.TPS, 0.02, SEED)
    assert (found.skips_missing_settings, found.published, found.metrics) == (False, None, ())


def test_top_level_keys_are_read() -> None:
    found = study('question = "why?"\ncache = "cold"\nif_missing = "skip"\nmetrics = ["tps", "latency_p95"]\n' + SHORT)
    assert (found.question, found.skips_missing_settings) == ("why?", True)
    assert found.metrics == ("tps", "latency_p95")
    assert found.contexts[0].comparison.cache is CacheState.COLD


def test_published_figures_are_read_and_checked() -> None:
    found = problem('published = "p.csv"\n' + SHORT)
    assert found.slug == "study-bad-figures"
    assert found.where.endswith("line 1, published")


def test_contexts_are_the_ordered_product_of_the_other_factors() -> None:
    text = """
        title = "t"
        compare = "server"
        [factors]
        jit = [true, false]
        cache = ["cold", "warm"]
        scale = [10, 1]
        load = ["c2", "c1"]
        server = ["16", "17"]
        workload = ["b", "a"]
        dataset = ["y", "x"]
        [workloads.a]
        sql = "SELECT 1"
        [workloads.b]
        sql = "SELECT 2"
        [datasets.x]
        [datasets.y]
        [loads.c1]
        [loads.c2]
        clients = 2
    """
    found = labels(text)
    assert len(found) == 64
    assert found[0] == ("workload=b dataset=y load=c2 scale=10 cache=cold jit=on", ["16", "17"])
    assert found[1][0] == "workload=b dataset=y load=c2 scale=10 cache=cold jit=off"
    assert found[-1][0] == "workload=a dataset=x load=c1 scale=1 cache=warm jit=off"
    assert [context.number for context in study(text).contexts] == list(range(1, 65))


def test_factors_with_one_level_apply_everywhere_and_are_not_in_labels() -> None:
    text = SHORT.replace("[workload]", 'jit = ["off"]\nscale = [5]\ncache = ["cold"]\n[workload]')
    (context,) = study(text).contexts
    assert context.label == ""
    assert context.comparison.dataset.pgbench_scale == first_load(text).scale == 5
    assert context.comparison.cache is CacheState.COLD
    assert [str(setting) for setting in context.comparison.arms[1].settings] == ["jit=off"]


def test_the_baseline_comes_first_and_other_levels_keep_their_order() -> None:
    text = 'baseline = "17"\n' + SHORT.replace('"16.12", "17.8"', '"15", "16", "17", "18"')
    assert labels(text) == [("", ["17", "15", "16", "18"])]
    assert [arm.index for arm in study(text).contexts[0].comparison.arms] == [0, 1, 2, 3]


def test_a_server_named_twice_is_an_a_a_comparison() -> None:
    assert labels(SHORT.replace('"16.12", "17.8"', '"17", "17"')) == [("", ["17", "17 (2)"])]


def test_a_server_named_twice_makes_two_contexts_of_a_setting() -> None:
    text = 'compare = "work_mem"\n' + SHORT.replace(
        'server = ["16.12", "17.8"]', 'server = ["17", "17"]\nwork_mem = ["4MB", "64MB"]'
    )
    arms = ["work_mem=4MB", "work_mem=64MB"]
    assert labels(text) == [("server=17", arms), ("server=17 (2)", arms)]


def test_arms_are_named_after_compared_levels() -> None:
    workloads = 'title = "t"\ncompare = "workload"\n[factors]\nserver = ["17"]\n[workloads.a]\nsql = "1"\n'
    assert labels(workloads + '[workloads.b]\nbuiltin = "tpcb"\n') == [("", ["a", "b"])]
    datasets = 'dataset = ["x", "y"]\n[datasets.x]\nscale = 1\n[datasets.y]\nscale = 2\n[workload]'
    text = SHORT.replace('["16.12", "17.8"]\n[workload]', f'["17"]\n{datasets}')
    assert labels(text) == [("", ["x", "y"])]
    assert [arm.dataset.pgbench_scale for arm in study(text).contexts[0].comparison.arms] == [1, 2]
    assert study(text).contexts[0].comparison.factors == ("dataset",)


@pytest.mark.parametrize(
    ("factors", "compared"),
    [
        ('server = ["17"]\njit = ["on", "off"]', "jit"),
        ('server = ["16", "17"]\njit = ["on", "off"]', "server"),
        ('server = ["17"]\njit = ["on", "off"]\nscale = [1, 2]\ncache = ["warm", "cold"]', "jit"),
        ('server = ["16", "17"]\nscale = [1, 2]', "server"),
    ],
)
def test_compare_is_optional_if_unambiguous(factors: str, compared: str) -> None:
    text = SHORT.replace('server = ["16.12", "17.8"]', factors)
    assert {context.comparison.factors for context in study(text).contexts} == {(compared,)}


def test_factors_override_workload_settings_and_these_override_shared_settings() -> None:
    text = """
        title = "t"
        [factors]
        server = ["16", "17"]
        JIT = ["off"]
        [settings]
        shared_buffers = "1GB"
        work_mem = "1MB"
        jit = true
        [workload]
        sql = "SELECT 1"
        settings = { Work_Mem = "2MB", Jit = true, geqo = false }
    """
    arm = study(text).contexts[0].comparison.arms[0]
    assert [str(setting) for setting in arm.settings] == ["shared_buffers=1GB", "Work_Mem=2MB", "JIT=off", "geqo=off"]


@pytest.mark.parametrize(
    ("value", "text"), [("true", "on"), ("false", "off"), ("4", "4"), ("1.5", "1.5"), ('"4MB"', "4MB"), ('""', "")]
)
def test_setting_values_are_written_as_in_postgresql_conf(value: str, text: str) -> None:
    arm = study(f"{SHORT}[settings]\nx = {value}\n").contexts[0].comparison.arms[0]
    assert [str(setting) for setting in arm.settings] == [f"x={text}"]


def test_a_quoted_extension_setting_is_a_factor() -> None:
    text = SHORT.replace('server = ["16.12", "17.8"]', 'server = ["17"]\n"bench.delay" = [1, 2]')
    assert labels(text) == [("", ["bench.delay=1", "bench.delay=2"])]


def test_load_keys_map_to_pgbench_options() -> None:
    text = f'{SHORT}variables = {{ rows = 10, flag = true }}\n[load]\nclients = 4\nthreads = 2\nprotocol = "prepared"\n'
    workload = first_load(text)
    assert (workload.clients, workload.threads, workload.query_mode) == (4, 2, QueryMode.PREPARED)
    assert workload.variables == (("rows", "10"), ("flag", "true"))


def test_threads_are_limited_to_clients() -> None:
    assert first_load(f"{SHORT}[load]\nclients = 4\nthreads = 8\n").threads == 4
    assert first_load(f"{SHORT}[load]\nthreads = 8\n").threads == 1


def test_a_mix_has_weights_and_names() -> None:
    mix = '[{ script = "a.sql", weight = 2 }, { builtin = "select" }, { sql = "SELECT 1", weight = 0 }]'
    workload = first_load(SHORT.replace('script = "query.sql"', f"scripts = {mix}"))
    assert workload.scripts == (
        Script(name="a.sql", weight=2, text="SELECT 'a.sql';"),
        Script(name="select-only"),
        Script(name="sql 3", weight=0, text="SELECT 1"),
    )


def test_a_dataset_loads_tables_then_files_then_sql() -> None:
    dataset = study(f'{SHORT}[dataset]\nscale = 3\nsql = "ANALYZE"\nsetup = ["a.sql"]\n').contexts[0].comparison.dataset
    assert dataset == Dataset(
        pgbench_scale=3,
        setup_files=(
            SetupFile(path="/studies/a.sql", sha256=hashlib.sha256(b"SELECT 'a.sql';").hexdigest()),
            SetupFile(path="dataset inline", sha256=hashlib.sha256(b"ANALYZE").hexdigest(), text="ANALYZE"),
        ),
    )


def test_a_dataset_factor_overrides_the_datasets_of_workloads() -> None:
    text = """
        title = "t"
        [factors]
        server = ["16", "17"]
        [workloads.a]
        sql = "1"
        dataset = "x"
        [workloads.b]
        sql = "2"
        dataset = "y"
        [datasets.x]
        scale = 1
        [datasets.y]
        scale = 2
    """
    own = [context.comparison.dataset.pgbench_scale for context in study(text).contexts]
    assert own == [1, 2]
    chosen = text.replace("[workloads.a]", 'dataset = ["y"]\n[workloads.a]')
    assert [context.comparison.dataset.pgbench_scale for context in study(chosen).contexts] == [2, 2]


def test_a_scale_factor_replaces_the_scale_but_not_the_files() -> None:
    text = SHORT.replace("[workload]", "scale = [7]\n[workload]") + '[dataset]\nscale = 3\nsetup = ["a.sql"]\n'
    dataset = study(text).contexts[0].comparison.dataset
    assert (dataset.pgbench_scale, len(dataset.setup_files)) == (7, 1)


def test_design_keys_correspond_to_options() -> None:
    design = """
        [design]
        metric = "latency_p50"
        margin = "3%"
        budget = "30m"
        max_blocks = 20
        window = "2s"
        windows = 6
        warm_up = 4
        pin = "0,2-3"
        seed = 5
    """
    found = study(SHORT + design)
    plan = found.contexts[0].comparison.design
    assert (plan.metric, plan.margin, plan.budget_s, plan.max_blocks) == (Metric.LATENCY_P50, 0.03, 1800.0, 20)
    assert (plan.window_s, plan.window_is_given, plan.rounds, plan.rounds_are_given) == (2.0, True, 6, True)
    assert plan.pin == "0,2-3"
    assert (plan.warm_up_s, plan.seed, found.seed, found.budget_s) == (4.0, 5, 5, 1800.0)
    assert study(f"{SHORT}[design]\nblocks = 6\n").contexts[0].comparison.design.fixed_blocks == 6


def test_a_load_may_have_a_window_of_its_own() -> None:
    loads = '[loads.a]\nclients = 1\n[loads.b]\nclients = 2\nwindow = "300s"\n[design]\nwindow = "7s"\n'
    first, second = (context.comparison.design for context in study(SHORT + loads).contexts)
    assert (first.window_s, second.window_s, second.window_is_given) == (7.0, 300.0, True)
    fitted, given = (context.comparison.design for context in study(SHORT + loads.partition("[design]")[0]).contexts)
    assert (fitted.window_is_given, given.window_is_given) == (False, True)


def test_a_window_may_be_milliseconds_or_transactions() -> None:
    of_time = study(f'{SHORT}[design]\nwindow = "50ms"\n').contexts[0].comparison.design
    assert (of_time.window_s, of_time.window_kind, of_time.window_is_given) == (0.05, WindowKind.SLICE, True)
    counted = study(f'{SHORT}[design]\nwindow = "20tx"\n').contexts[0].comparison.design
    assert (counted.window_transactions, counted.window_kind) == (20, WindowKind.TRANSACTIONS)


def test_a_load_window_overrides_design_transactions() -> None:
    loads = '[loads.a]\nclients = 1\n[loads.b]\nclients = 2\nwindow = "50ms"\n[design]\nwindow = "20tx"\n'
    first, second = (context.comparison.design for context in study(SHORT + loads).contexts)
    assert (first.window_transactions, first.window_kind) == (20, WindowKind.TRANSACTIONS)
    assert (second.window_transactions, second.window_kind, second.window_s) == (None, WindowKind.SLICE, 0.05)


def test_a_budget_argument_overrides_the_file() -> None:
    found = study(f'{SHORT}[design]\nbudget = "30m"\n', budget_s=60.0)
    assert found.budget_s == found.contexts[0].comparison.design.budget_s == 60.0


def test_a_budget_argument_conflicts_with_a_fixed_number_of_blocks() -> None:
    with pytest.raises(StudyFileError) as caught:
        study(f"{SHORT}[design]\nblocks = 10\n", budget_s=60.0)
    (one,) = caught.value.problems
    assert (one.slug, one.found) == ("study-two-designs", "blocks with budget")


def test_a_seed_argument_overrides_the_file() -> None:
    found = study(f"{SHORT}[design]\nseed = 5\n", requested_seed=9)
    assert found.seed == found.contexts[0].comparison.design.seed == 9


def test_each_load_has_a_suitable_default_metric() -> None:
    loads = "[loads.closed]\nclients = 2\n[loads.open]\nclients = 2\nrate = 100\n"
    designs = [context.comparison.design for context in study(SHORT + loads).contexts]
    assert [(design.metric, design.margin) for design in designs] == [(Metric.TPS, 0.02), (Metric.LATENCY_P95, 0.05)]


def test_exclude_drops_combinations_and_contexts_without_contenders() -> None:
    text = SHORT.replace('"17.8"]', '"17.8", "18"]\njit = ["on", "off"]') + "[[exclude]]\n"
    assert labels(f'{text}server = "18"\njit = "off"\n') == [
        ("jit=on", ["16.12", "17.8", "18"]),
        ("jit=off", ["16.12", "17.8"]),
    ]
    assert labels(f"{text}jit = true\n") == [("jit=off", ["16.12", "17.8", "18"])]
    both = f'{text}server = "18"\njit = "on"\n[[exclude]]\nserver = "17.8"\njit = "on"\n'
    assert labels(both) == [("jit=off", ["16.12", "17.8", "18"])]
    assert study(both).contexts[0].number == 1


def test_exclude_takes_precedence_over_only() -> None:
    text = SHORT.replace('"17.8"]', '"17.8"]\nscale = [1, 2, 3]') + "[[only]]\nscale = 1\n[[only]]\nscale = 2\n"
    assert [label for label, _ in labels(text)] == ["scale=1", "scale=2"]
    assert [label for label, _ in labels(f"{text}[[exclude]]\nscale = 2\n")] == ["scale=1"]


def test_a_row_may_name_a_factor_with_one_level() -> None:
    rows = '[[only]]\nworkload = "query.sql"\nload = "load"\ncache = "warm"\n'
    assert labels(SHORT + rows) == [("", ["16.12", "17.8"])]


def test_a_dataset_is_restored_from_a_dump_or_a_base_backup() -> None:
    found = study(f'{SHORT}[dataset]\nrestore = "backup"\ndatabase = "app"\nsql = "SELECT 1;"\n')
    dataset = found.contexts[0].comparison.dataset
    assert dataset.restore == find_dump("backup", "app")
    assert problem(f'{SHORT}[dataset]\nrestore = "missing"\n').slug == "study-no-dump"
    idle = problem(f'{SHORT}[dataset]\ndatabase = "app"\n')
    assert (idle.slug, idle.where) == ("study-idle-database", "planner.toml, line 7, [dataset] database")


def test_server_labels_come_from_the_caller_without_passwords() -> None:
    def name_server(text: str) -> tuple[str, ServerName]:
        return (text if "/" not in text else "host/db"), parse_server(text)

    text = SHORT.replace('"17.8"', '"postgresql://me:secret@host/db", "postgresql://you:secret@host/db"')
    found = read_study(text, name="x.toml", read=read_file, find_dump=find_dump, seed=1, name_server=name_server)
    arms = found.contexts[0].comparison.arms
    assert [arm.label for arm in arms] == ["16.12", "host/db", "host/db (2)"]
    assert arms[1].server == RunningServer(uri="postgresql://me:secret@host/db")


def test_each_file_is_read_once() -> None:
    read: list[str] = []

    def reading(path: str) -> tuple[str, bytes]:
        read.append(path)
        return read_file(path)

    workloads = '[workloads.a]\nscript = "q.sql"\n[workloads.b]\nscript = "q.sql"\n[workloads.c]\nscript = "r.sql"\n'
    text = SHORT.replace('[workload]\nscript = "query.sql"\n', workloads)
    read_study(text, name="x.toml", read=reading, find_dump=find_dump, seed=1)
    assert read == ["q.sql", "r.sql"]


def test_a_byte_order_mark_and_windows_line_endings_are_accepted() -> None:
    assert study("\ufeff" + SHORT.replace("\n", "\r\n")).contexts == study(SHORT).contexts


def test_equal_parts_are_shared_between_contexts() -> None:
    text = SHORT.replace("[workload]", 'jit = ["on", "off"]\ncache = ["warm", "cold"]\n[workload]')
    comparisons = [context.comparison for context in study(text).contexts]
    assert len({id(one.workload) for one in comparisons}) == 1
    assert len({id(one.design) for one in comparisons}) == 1
    assert len({id(one.dataset) for one in comparisons}) == 1
    assert len({id(arm.settings) for one in comparisons for arm in one.arms}) == 2


def test_a_title_is_one_line() -> None:
    assert study(SHORT.replace('"Two servers"', '"""\nTwo\n  servers"""')).title == "Two servers"
