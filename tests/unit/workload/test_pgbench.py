import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.study.workload import PgbenchWorkload, QueryMode, Script
from pgversus.workload.pgbench import (
    Summary,
    UnreadableOutputError,
    command,
    initialize_command,
    parse_summary,
    stderr_text,
    with_missing_tables,
)
from tests.builders import DATA

CAPTURED = DATA / "pgbench"
FINISHED = ("closed_loop", "rate", "rate_with_limit", "serialization", "serialization_retried")
BROKEN = ("failing_script", "syntax_error", "missing_table", "nothing_finished", "connection_lost")
REFUSED = ("dead_socket", "no_database")
MIX = PgbenchWorkload(
    scripts=(Script(name="tpcb-like", weight=2), Script(name="a.sql", weight=3, text="SELECT 1"), Script(name="se")),
    clients=8,
    threads=2,
    query_mode=QueryMode.PREPARED,
    variables=(("rows", "1000"), ("mode", "a b")),
)
BUILTIN = PgbenchWorkload(scripts=(Script(name="select-only"),))


def captured(name: str) -> str:
    return (CAPTURED / name).read_text()


def arguments(workload: PgbenchWorkload, *files: Path | None, conninfo: str = "host=/tmp/s dbname=d") -> list[str]:
    return command(
        workload,
        pgbench=Path("/opt/bin/pgbench"),
        conninfo=conninfo,
        script_files=files,
        length=("-T", "5"),
        seed=42,
        log_prefix=Path("/tmp/run/log"),
    )


def pairs(found: list[str], flag: str) -> list[str]:
    return [found[i + 1] for i, argument in enumerate(found) if argument == flag]


def test_the_command_line_describes_the_whole_load() -> None:
    found = arguments(MIX, None, Path("/run/script-1.sql"), None)
    assert found[0] == "/opt/bin/pgbench"
    assert found[-1] == "host=/tmp/s dbname=d"
    assert pairs(found, "-T") == ["5"]
    assert pairs(found, "-c") == ["8"]
    assert pairs(found, "-j") == ["2"]
    assert pairs(found, "-M") == ["prepared"]
    assert pairs(found, "-b") == ["tpcb-like@2", "se"]
    assert pairs(found, "-f") == ["/run/script-1.sql@3"]
    assert pairs(found, "-D") == ["rows=1000", "mode=a b"]
    assert {"-n", "--log", "--random-seed=42", "--log-prefix=/tmp/run/log"} <= set(found)
    assert "-R" not in found
    assert "-s" not in found


def test_scripts_of_all_kinds_stay_in_order() -> None:
    found = arguments(MIX, None, Path("/run/script-1.sql"), None)
    assert [argument for argument in found if argument in ("-b", "-f")] == ["-b", "-f", "-b"]


@pytest.mark.parametrize(("rate", "shown"), [(50.0, "50"), (0.5, "0.5"), (1234.5, "1234.5")])
def test_a_rate_is_passed_to_pgbench(rate: float, shown: str) -> None:
    assert pairs(arguments(replace(BUILTIN, rate=rate), None), "-R") == [shown]


def test_the_scale_is_passed_only_for_script_files() -> None:
    file = Script(name="a.sql", text="SELECT :scale")
    assert pairs(arguments(replace(BUILTIN, scripts=(file,), scale=10), Path("/a.sql")), "-s") == ["10"]
    assert pairs(arguments(replace(BUILTIN, scale=10), None), "-s") == []
    assert pairs(arguments(replace(BUILTIN, scripts=(file, *BUILTIN.scripts), scale=10), Path("/a"), None), "-s") == []


@pytest.mark.parametrize(("weight", "shown"), [(None, "@1"), (0, "@0"), (3, "@3")])
def test_a_script_path_with_an_at_sign_has_its_weight_after_the_last_one(weight: int | None, shown: str) -> None:
    file = Script(name="a.sql", weight=weight, text="SELECT 1")
    home = Path("/home/ann@corp.example/a.sql")
    assert pairs(arguments(replace(BUILTIN, scripts=(file,)), home), "-f") == [f"{home}{shown}"]


def test_a_file_for_each_script_is_required() -> None:
    with pytest.raises(ValueError, match="shorter"):
        arguments(MIX, None)


def test_tables_are_filled_by_the_client() -> None:
    found = initialize_command(pgbench=Path("/opt/bin/pgbench"), conninfo="dbname=d", scale=10)
    assert found == ["/opt/bin/pgbench", "-i", "-q", "-I", "dtgvp", "-s", "10", "dbname=d"]


@pytest.mark.parametrize(
    ("name", "transactions", "failed", "tps"),
    [
        ("closed_loop", 98, 0, 97.976877),
        ("rate", 50, 0, 49.860838),
        ("rate_with_limit", 192, 0, 95.935771),
        ("serialization", 90, 267, 90.016473),
        ("serialization_retried", 89, 72, 89.334289),
    ],
)
def test_the_summary_of_a_real_run_is_read(name: str, transactions: int, failed: int, tps: float) -> None:
    assert captured(f"{name}.exit").strip() == "0"
    found = parse_summary(captured(f"{name}.stdout"))
    assert (found.transactions, found.failed) == (transactions, failed)
    assert found.seconds == pytest.approx(transactions / tps)


@pytest.mark.parametrize("name", FINISHED)
def test_the_seconds_match_the_requested_duration(name: str) -> None:
    text = captured(f"{name}.stdout")
    requested = re.search(r"^duration: (\d+) s$", text, re.MULTILINE)
    assert requested is not None
    assert parse_summary(text).seconds == pytest.approx(int(requested[1]), rel=0.05)


@pytest.mark.parametrize("name", BROKEN + REFUSED)
def test_the_output_of_a_broken_run_is_not_a_summary(name: str) -> None:
    assert captured(f"{name}.exit").strip() == ("2" if name in BROKEN else "1")
    with pytest.raises(UnreadableOutputError):
        parse_summary(captured(f"{name}.stdout"))


@pytest.mark.parametrize("name", FINISHED)
def test_a_summary_with_a_missing_line_is_rejected(name: str) -> None:
    lines = captured(f"{name}.stdout").splitlines()
    needed = ("number of transactions actually processed", "tps = ")
    for start in needed:
        rest = [line for line in lines if not line.startswith(start)]
        assert len(rest) < len(lines)
        with pytest.raises(UnreadableOutputError):
            parse_summary("\n".join(rest))


@pytest.mark.parametrize("name", FINISHED)
def test_a_summary_truncated_before_its_tps_is_rejected(name: str) -> None:
    text = captured(f"{name}.stdout")
    end = text.index("\ntps = ")
    for length in range(end + 1):
        with pytest.raises(UnreadableOutputError):
            parse_summary(text[:length])


@pytest.mark.parametrize(
    "change",
    [
        ("(without initial connection time)", "(excluding connections establishing)"),
        ("(without initial connection time)", "(including reconnection times)"),
        ("number of transactions actually processed", "transactions done"),
        ("tps = 97.976877", "tps = -nan"),
        ("tps = 97.976877", "tps = 0.000000"),
        ("processed: 98", "processed: 0"),
        ("processed: 98", "processed: -98"),
        ("processed: 98", "processed: " + "9" * 5000),
        ("processed: 98", "processed: \u0669"),
        ("tps = 97.976877", "tps = " + "9" * 400),
        ("tps = 97.976877", "tps = ."),
        ("tps = 97.976877", "tps = 1.2.3"),
        ("tps = 97.976877", "tps = -97.976877"),
        ("tps = 97.976877", "tps = 1e999"),
    ],
)
def test_a_different_wording_or_an_empty_run_is_rejected(change: tuple[str, str]) -> None:
    text = captured("closed_loop.stdout")
    assert change[0] in text
    with pytest.raises(UnreadableOutputError):
        parse_summary(text.replace(*change))


@given(st.text())
def test_garbage_is_not_a_summary(text: str) -> None:
    with pytest.raises(UnreadableOutputError):
        parse_summary(text)


def test_summaries_compare_by_value() -> None:
    assert parse_summary(captured("rate.stdout")) == Summary(
        transactions=50, failed=0, seconds=50 / 49.860838, connect_s=2.691 / 1000
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("failing_script", "division by zero"),
        ("syntax_error", 'syntax error at or near "SELEC"'),
        ("missing_table", 'relation "nowhere" does not exist'),
        ("nothing_finished", "canceling statement due to statement timeout"),
        ("connection_lost", "terminating connection due to administrator command"),
        ("dead_socket", "No such file or directory"),
        ("no_database", 'database "nosuch" does not exist'),
    ],
)
def test_error_messages_are_those_of_pgbench(name: str, words: str) -> None:
    stderr = captured(f"{name}.stderr")
    found = stderr_text(stderr)
    assert words in found
    assert all(line in stderr.splitlines() for line in found.splitlines())
    assert "setting random seed" not in found


def test_many_errors_are_reduced_to_the_first() -> None:
    found = stderr_text(captured("syntax_error.stderr") * 6)
    assert len(found.splitlines()) == 6
    assert found.startswith(stderr_text(captured("syntax_error.stderr")))


def test_without_error_lines_the_last_lines_are_returned() -> None:
    assert stderr_text("1\n\n2\n3\n4\n5\n6\n7\n") == "2\n3\n4\n5\n6\n7"
    assert stderr_text("") == ""


def test_missing_tables_of_pgbench_are_reported_with_the_option_that_creates_them() -> None:
    words = 'ERROR:  relation "pgbench_accounts" does not exist'
    assert with_missing_tables(words, "fix it").startswith("pgbench's tables were not created: add -i")
    assert with_missing_tables('ERROR:  relation "accounts" does not exist', "fix it") == "fix it"
