"""Hints for options that pgversus does not have, and completion of names."""

import click
import pytest

from pgversus.cli.compare import compare
from pgversus.cli.main import run
from pgversus.cli.run import run as run_command
from pgversus.cli.studies import copy
from pgversus.study.metrics import JUDGED_BY_NAME

OF_PGBENCH = (
    *("-T", "--time", "-t", "--transactions", "-P", "--progress", "--progress-timestamp", "-l", "--log"),
    *("--log-prefix", "--sampling-rate", "--aggregate-interval", "-r", "--report-per-command", "-C", "--connect"),
    *("--vacuum-all", "-F", "--fillfactor", "-I", "--init-steps", "--partitions", "--partition-method"),
    *("--tablespace", "--index-tablespace", "--unlogged-tables", "--foreign-keys", "--random-seed"),
    *("-L", "--latency-limit", "--max-tries", "--failures-detailed", "--verbose-errors", "--debug"),
    *("--show-script", "--exit-on-abort"),
)
OF_PSQL = ("-h", "--host", "-p", "--port", "-U", "--username", "-d", "--dbname", "-W", "--password", "-w", "-V")


def refusal(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(list(arguments)) == 2
    return capfd.readouterr().err


@pytest.mark.parametrize("option", [*OF_PGBENCH, *OF_PSQL])
def test_an_option_of_pgbench_or_psql_has_a_hint_and_no_guess(option: str, capfd: pytest.CaptureFixture[str]) -> None:
    text = refusal(capfd, "compare", "16", "17", "-S", option, "3")
    assert f"No such option '{option}'." in text
    assert "Did you mean" not in text
    assert "--help" not in text


@pytest.mark.parametrize("command", ["compare", "plans", "demo"])
def test_the_hint_for_a_host_is_the_same_for_all_commands_and_not_redacted(
    command: str, capfd: pytest.CaptureFixture[str]
) -> None:
    servers = () if command == "demo" else ("16", "17", "-S")
    text = refusal(capfd, command, *servers, "-h", "localhost")
    assert "postgresql://HOST:PORT/DATABASE (PGUSER names the user)" in text


def test_an_option_of_compare_has_a_hint_on_other_commands(capfd: pytest.CaptureFixture[str]) -> None:
    assert "nothing is measured" in refusal(capfd, "plans", "16", "17", "-S", "-c", "4")
    assert "docs/study-file.md" in refusal(capfd, "run", "planner-16-vs-17", "-c", "4")


def test_other_wrong_options_have_guesses(capfd: pytest.CaptureFixture[str]) -> None:
    assert "Did you mean" in refusal(capfd, "compare", "16", "17", "-S", "--blokcs", "4")


def test_text_in_place_of_a_number_is_reported_as_an_invalid_integer(capfd: pytest.CaptureFixture[str]) -> None:
    assert "'select 1' is not a valid integer." in refusal(capfd, "compare", "16", "17", "-S", "-c", "select 1")


def completed(command: click.Command, name: str, typed: str) -> list[str]:
    (parameter,) = [one for one in command.params if one.name == name]
    return [one.value for one in parameter.shell_complete(click.Context(command), typed)]


def test_names_are_completed() -> None:
    assert completed(compare, "builtins", "s") == ["simple-update", "select-only"]
    assert completed(run_command, "study_name", "planner") == ["planner-16-vs-17"]
    assert completed(copy, "name", "block") == ["block-size"]


def test_a_hint_suggests_a_metric_that_exists(capfd: pytest.CaptureFixture[str]) -> None:
    words = refusal(capfd, "compare", "16", "17", "-S", "-L", "50").split()
    assert words[words.index("--metric") + 1] in JUDGED_BY_NAME
