import hashlib
from pathlib import Path

import click
import pytest

from pgversus.cli.compare import compare
from pgversus.cli.main import run
from pgversus.cli.question import check_tables, comparison_of
from pgversus.errors import StudyError
from pgversus.study.comparison import Comparison
from pgversus.study.metrics import JUDGED_BY_NAME, Metric
from pgversus.study.servers import RunningServer
from pgversus.study.workload import Operation, PgbenchWorkload, QueryMode, Script, Step

OPERATION = ("--operation", "VACUUM pgbench_accounts")


def requested(*arguments: str) -> Comparison:
    """Return the comparison of this command line, with point lookups unless it names another workload."""
    work = () if {"-f", "-b", "-S", "-N", "--operation", "--command"} & {*arguments} else ("-S",)
    with compare.make_context("compare", [*arguments, *work]) as context:
        return comparison_of(context.params)


def of_load(comparison: Comparison) -> PgbenchWorkload:
    assert isinstance(comparison.workload, PgbenchWorkload)
    return comparison.workload


def refused(*arguments: str) -> StudyError:
    with pytest.raises(StudyError) as caught:
        requested(*arguments)
    return caught.value


def test_two_servers_and_a_builtin_script_are_a_complete_question() -> None:
    found = requested("16", "17", "-b", "tpcb-like")
    assert [arm.label for arm in found.arms] == ["16", "17"]
    assert of_load(found).scripts == (Script(name="tpcb-like"),)
    assert found.dataset.is_empty
    assert found.design.metric is Metric.TPS
    assert found.design.margin == 0.02
    assert found.design.budget_s == 900
    assert found.design.max_blocks == 100
    assert found.design.fixed_blocks is None
    assert not found.design.window_is_given


@pytest.mark.parametrize("flags", [(), ("-i",), ("-c", "4"), ("--set", "work_mem=4MB")])
def test_there_is_no_default_workload(flags: tuple[str, ...]) -> None:
    with compare.make_context("compare", ["16", "17", *flags]) as context, pytest.raises(StudyError) as caught:
        comparison_of(context.params)
    assert (caught.value.slug, caught.value.where) == ("study-no-workload", "compare")
    assert "--operation" in caught.value.found
    assert "-i -b tpcb-like" in caught.value.to_do


@pytest.mark.parametrize("server", ["17", "postgresql://h/d"])
def test_builtin_scripts_need_tables_on_servers_that_are_started(server: str, tmp_path: Path) -> None:
    setup = tmp_path / "s.sql"
    setup.touch()
    with pytest.raises(StudyError) as caught:
        check_tables(requested("16", server, "-S"))
    assert caught.value.slug == "study-no-tables"
    assert "add -i" in caught.value.to_do
    script = tmp_path / "q.sql"
    script.write_text("SELECT 1;\n")
    for data in (("-i", "-S"), ("--setup", str(setup), "-S"), ("-f", str(script)), OPERATION):
        check_tables(requested("16", server, *data))
    check_tables(requested("postgresql://h/d", "postgresql://h/e", "-S"))


@pytest.mark.parametrize("command", ["compare", "plans"])
def test_a_command_without_pgbenchs_tables_is_refused_before_it_does_anything(
    command: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run([command, "16", "17", "-S", *(["--dry-run"] if command == "compare" else [])]) == 2
    assert "error[study-no-tables]" in capfd.readouterr().err


def test_clients_and_threads_have_their_own_names_besides_those_of_pgbench() -> None:
    found = requested("16", "17", "--clients", "4", "--threads", "2")
    assert found.workload == requested("16", "17", "--client", "4", "--jobs", "2").workload
    assert (of_load(found).clients, of_load(found).threads) == (4, 2)


def test_there_is_one_thread_per_client_up_to_the_number_of_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2})
    assert [of_load(requested("16", "17", "-c", clients)).threads for clients in ("1", "2", "3", "8")] == [1, 2, 3, 3]


def test_flags_have_the_same_meaning_as_in_pgbench(tmp_path: Path) -> None:
    script = tmp_path / "a.sql"
    script.write_text("SELECT :n;\n")
    comparison = requested(
        *("16", "17", "-b", "simple@2", "-f", f"{script}@3", "-S", "-N", "-c", "8", "-j", "2", "-M", "prepared"),
        *("-D", "n=1", "-s", "10", "-i", "-n"),
    )
    found = of_load(comparison)
    assert found.scripts == (
        Script(name="simple-update", weight=2),
        Script(name="select-only"),
        Script(name="simple-update"),
        Script(name=str(script), weight=3, text="SELECT :n;\n"),
    )
    assert (found.clients, found.threads, found.query_mode) == (8, 2, QueryMode.PREPARED)
    assert found.variables == (("n", "1"),)
    assert found.scale == 10


def test_threads_are_limited_to_the_number_of_clients_as_in_pgbench() -> None:
    assert of_load(requested("16", "17", "-c", "4", "-j", "8")).threads == 4


def test_setup_files_are_identified_by_their_content(tmp_path: Path) -> None:
    setup = tmp_path / "setup.sql"
    setup.write_bytes(b"CREATE TABLE t ();")
    dataset = requested("16", "17", "--setup", str(setup)).dataset
    assert dataset.pgbench_scale is None
    assert dataset.setup_files[0].path == str(setup)
    assert dataset.setup_files[0].sha256 == hashlib.sha256(b"CREATE TABLE t ();").hexdigest()


@pytest.mark.parametrize(("flags", "scale"), [(("-i",), 1), (("-i", "-s", "10"), 10), (("-s", "10"), None)])
def test_pgbench_tables_are_created_only_if_requested(flags: tuple[str, ...], scale: int | None) -> None:
    assert requested("16", "17", *flags).dataset.pgbench_scale == scale


def test_with_a_rate_the_verdict_is_on_p95_latency_with_its_own_margin() -> None:
    design = requested("16", "17", "-R", "50").design
    assert design.metric is Metric.LATENCY_P95
    assert design.margin == 0.05


def test_tps_is_rejected_as_the_metric_with_a_rate() -> None:
    assert refused("16", "17", "-R", "50", "--metric", "tps").slug == "study-rate-and-tps"


@pytest.mark.parametrize("word", JUDGED_BY_NAME)
def test_every_metric_can_be_selected_by_name(word: str) -> None:
    work = OPERATION if JUDGED_BY_NAME[word] is Metric.TIME else ()
    assert requested("16", "17", *work, "--metric", word).design.metric is JUDGED_BY_NAME[word]
    assert not word.endswith("_s")


def test_the_design_follows_the_flags() -> None:
    design = requested("16", "17", "--margin", "3%", "--budget", "2h", "--max-blocks", "20", "--seed", "5").design
    assert (design.margin, design.budget_s, design.max_blocks, design.seed) == (0.03, 7200, 20, 5)
    assert design.precision is None
    assert requested("16", "17", "--precision", "1.5%").design.precision == pytest.approx(0.015)


def test_a_fixed_number_of_blocks_excludes_limits_and_a_precision() -> None:
    assert requested("16", "17", "--blocks", "12").design.fixed_blocks == 12
    assert refused("16", "17", "--blocks", "12", "--budget", "5m").slug == "study-two-designs"
    assert refused("16", "17", "--blocks", "12", "--max-blocks", "20").slug == "study-two-designs"
    both = refused("16", "17", "--blocks", "12", "--precision", "3%")
    assert (both.slug, both.where) == ("study-two-designs", "--blocks with --precision")


def test_a_window_is_a_whole_number_of_seconds() -> None:
    design = requested("16", "17", "--window", "3s").design
    assert (design.window_s, design.window_is_given) == (3.0, True)
    error = refused("16", "17", "--window", "2.5s")
    assert error.slug == "study-bad-window"
    assert error.to_do == "--window 2"
    assert refused("16", "17", "--warmup", "0.5").to_do == "--warmup 1"


def test_without_a_seed_a_random_one_is_drawn() -> None:
    seeds = {requested("16", "17").design.seed for _ in range(5)}
    assert len(seeds) > 1
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert requested("16", "17", "--seed", "0").design.seed == 0


def test_levels_of_a_setting_are_arms_of_one_server() -> None:
    found = requested("17", "--set", "work_mem=4MB,64MB", "--set", "jit=off")
    assert [arm.label for arm in found.arms] == ["work_mem=4MB", "work_mem=64MB"]
    assert found.factors == ("work_mem",)
    assert refused("17", "--set", "jit=on,off", "--set", "JIT=on").slug == "study-repeated-setting"


def test_a_password_never_becomes_part_of_a_label() -> None:
    found = requested("postgresql://me:secret@db.example:5433/app", "17")
    assert found.baseline.label == "db.example:5433/app"
    assert isinstance(found.baseline.server, RunningServer)
    assert "secret" not in "".join(arm.label for arm in found.arms)


@pytest.mark.parametrize(
    ("arguments", "slug"),
    [
        (("16",), "study-one-arm"),
        (("16", "seventeen"), "study-unknown-server"),
        (("16", "9.6"), "study-version-too-old"),
        (("16", "17", "-b", "s"), "study-unknown-builtin"),
        (("16", "17", "-b", "tpcb@x"), "study-bad-weight"),
        (("16", "17", "-b", "tpcb@0"), "study-no-weight"),
        (("16", "17", "-f", "/nowhere/a.sql"), "study-no-file"),
        (("16", "17", "--setup", "/nowhere/a.sql"), "study-no-file"),
        (("16", "17", "-f", "/"), "study-no-file"),
        (("16", "17", "-D", "n"), "study-bad-variable"),
        (("16", "17", "--margin", "0.02"), "study-bad-margin"),
        (("16", "17", "--precision", "0.03"), "study-bad-precision"),
        (("16", "17", "--precision", "0"), "study-bad-precision"),
        (("16", "17", "--precision", "101%"), "study-bad-precision"),
        (("16", "17", "--budget", "soon"), "study-bad-duration"),
        (("16", "17", "--set", "jit"), "study-bad-setting"),
        (("16", "17", "--set", "jit=on,on"), "study-repeated-level"),
        (("16", "17", "--metric", "time"), "study-metric-of-other-kind"),
        (("16", "17", "--prepare", "/nowhere/a.sql"), "study-no-operation"),
        (("16", "17", "--verify", "SELECT true"), "study-no-operation"),
        (("16", "17", *OPERATION, "--prepare", "/nowhere/a.sql"), "study-no-file"),
        (("16", "17", *OPERATION, "--metric", "tps"), "study-metric-of-other-kind"),
        (("16", "17", *OPERATION, "--window", "2s"), "study-windows-of-operation"),
        (("16", "17", *OPERATION, "-D", "n=1"), "study-idle-variables"),
        (("16", "17", *OPERATION, "--verify", ""), "study-bad-statement"),
        (("16", "17", "--operation", ";"), "study-bad-statement"),
        (("16", "17", "--command", "'"), "study-bad-command"),
        (("16", "17", *OPERATION, "--command", "sync"), "study-two-workloads"),
        (("16", "17", "--rewrite", "/nowhere/a.sql"), "study-no-rewrite"),
        (("16", "17", "-S", "-N", "--rewrite", "/nowhere/a.sql"), "study-no-rewrite"),
    ],
)
def test_an_invalid_question_is_reported_completely(arguments: tuple[str, ...], slug: str) -> None:
    error = refused(*arguments)
    assert error.slug == slug
    assert all((error.where, error.found, error.expected, error.to_do))


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("-R", "5e-324"),
        ("-R", "0"),
        ("-c", "1000000000000"),
        *((flag, "9" * 400) for flag in ("-c", "-j", "-s", "--windows", "--blocks")),
    ],
)
def test_numbers_beyond_the_limits_of_a_study_file_are_rejected(flag: str, value: str) -> None:
    with pytest.raises(click.BadParameter):
        requested("16", "17", flag, value)


def test_a_script_that_is_not_utf8_is_rejected(tmp_path: Path) -> None:
    script = tmp_path / "latin1.sql"
    script.write_bytes("SELECT 'é';".encode("latin-1"))
    assert refused("16", "17", "-f", str(script)).slug == "study-script-encoding"


def test_an_operation_has_prepared_data_and_is_judged_by_its_time(tmp_path: Path) -> None:
    dirty = tmp_path / "dirty.sql"
    dirty.write_bytes(b"DELETE FROM t;")
    found = requested(
        *("15.10", "16.6", *OPERATION, "--operation", "VACUUM pgbench_accounts;", "--verify", "SELECT true"),
        *("--prepare", str(dirty), "-D", "dead=70", "-i", "-s", "10"),
    )
    steps = (
        Step(name="VACUUM pgbench_accounts", sql="VACUUM pgbench_accounts"),
        Step(name="VACUUM pgbench_accounts (2)", sql="VACUUM pgbench_accounts;"),
    )
    name = "VACUUM pgbench_accounts, VACUUM pgbench_accounts (2)"
    assert found.workload == Operation(name=name, steps=steps, verify=("SELECT true",))
    assert found.dataset.prepare[0].path == str(dirty)
    assert found.dataset.prepare[0].sha256 == hashlib.sha256(b"DELETE FROM t;").hexdigest()
    assert found.dataset.variables == (("dead", "70"),)
    assert found.dataset.pgbench_scale == 10
    assert (found.design.metric, found.design.margin, found.design.rounds) == (Metric.TIME, 0.05, 1)


def test_a_program_can_be_an_operation() -> None:
    found = requested("16", "17", "--command", "pg_dump -Fc -f 'db dump'").workload
    steps = (Step(name="pg_dump", program=("pg_dump", "-Fc", "-f", "db dump")),)
    assert found == Operation(name="pg_dump", steps=steps)


@pytest.mark.parametrize("flag", ["-f x", "-b tpcb", "-S", "-N", "-c 1", "-j 1", "-M simple", "-R 5", "--rewrite x"])
def test_options_of_a_load_are_rejected_with_an_operation(flag: str) -> None:
    error = refused("16", "17", *OPERATION, *flag.split())
    assert error.slug == "study-two-workloads"
    assert error.found == f"--operation and {flag.split(maxsplit=1)[0]}"


def test_a_rewrite_belongs_to_the_only_script(tmp_path: Path) -> None:
    script, rewrite = tmp_path / "a.sql", tmp_path / "b.sql"
    script.write_text("SELECT 1;")
    rewrite.write_text("SELECT 2 - 1;")
    found = of_load(requested("16", "17", "-f", str(script), "--rewrite", str(rewrite)))
    assert found.scripts == (Script(name=str(script), text="SELECT 1;"),)
    assert found.rewrite == Script(name=str(rewrite), text="SELECT 2 - 1;")
    refusal = refused("16", "17", "-f", str(script), "-f", str(script), "--rewrite", str(rewrite))
    assert (refusal.slug, refusal.found) == ("study-no-rewrite", f"{script}, {script}")
    assert refused("16", "17", "-f", str(script), "--rewrite", str(tmp_path / "none")).slug == "study-no-file"


@pytest.mark.parametrize("variable", ["db_password=Geheim99", "target=postgresql://u:Geheim99@h/d"])
def test_a_pgbench_variable_with_a_password_is_rejected_and_not_repeated(variable: str) -> None:
    error = refused("16", "17", "-S", "-D", variable)
    assert (error.slug, "Geheim99" in repr(error)) == ("study-bad-variable", False)


def test_a_number_is_not_a_secret_whatever_its_name() -> None:
    assert of_load(requested("16", "17", "-S", "-D", "client_key=7")).variables == (("client_key", "7"),)


def test_labels_of_settings_contain_no_password() -> None:
    commands = "PGPASSWORD=Geheim99 gzip,PGPASSWORD=Geheim99 lz4,PGPASSWORD=Geheim98 lz4"
    found = requested(
        "17", "-S", "--set", f"archive_command={commands}", "--set", "ssl_passphrase_command=echo Geheim99"
    )
    assert [arm.label for arm in found.arms] == [
        "archive_command=PGPASSWORD=... gzip",
        "archive_command=PGPASSWORD=... lz4",
        "archive_command=PGPASSWORD=... lz4 (2)",
    ]
    assert "Geheim99" in repr(found.arms[0].settings), "what is set is what was asked for"


def test_the_name_of_an_operation_is_its_statement_without_the_password() -> None:
    found = requested("16", "17", "--operation", "ALTER ROLE u PASSWORD 'Geheim99'").workload
    assert isinstance(found, Operation)
    assert found.name == "ALTER ROLE u PASSWORD ..."
    assert found.steps[0].sql == "ALTER ROLE u PASSWORD 'Geheim99'"


@pytest.mark.parametrize("flag", ["-c", "-j", "-s", "--blocks", "--windows"])
def test_numbers_beyond_an_int_are_refused_without_a_limit_in_the_help(
    flag: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", "16", "17", "-i", "-S", flag, str(2**31)]) == 2
    assert f"{2**31} is larger than {2**31 - 1}." in capfd.readouterr().err
    assert run(["compare", "--help"]) == 0
    assert str(2**31 - 1) not in capfd.readouterr().out
