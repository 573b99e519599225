"""Two real runs side by side, and one of them as an article."""

import json

import pytest

from tests.live.conftest import QUICK, CommandLine


@pytest.mark.long
def test_two_real_runs_are_shown_side_by_side(command_line: CommandLine) -> None:
    arguments = ("17.8", "17.8", "-S", "-i", "-s", "1", *QUICK)
    for name, clients in (("a", "1"), ("b", "1"), ("c", "2")):
        ended = command_line.run("compare", *arguments, "-c", clients, "--results", name, "--no-plans", "--json")
        assert ended.code == 0, ended.stderr
    ended = command_line.run("report", "a", "b", "--json")
    assert ended.code == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["schema"] == "pgversus.side-by-side/1"
    (row,) = found["rows"]
    assert (row["a"]["contender"], row["b"]["contender"]) == ("17.8 (2)", "17.8 (2)")
    assert row["matched_by"] == "name"
    assert row["quotient"] is not None
    # Same host and build, usually the same day: at most a different day or a caveat is reported.
    assert {note["kind"] for note in row["not_alike"]} <= {"days", "check"}
    assert found["not_comparable"] == []
    ended = command_line.run("report", "a", "c", "--lang", "en")
    assert "clients 1 in A, 2 in B" in ended.stdout, ended.stderr
    ended = command_line.run("report", "a", "--format", "markdown", "--style", "article", "--lang", "en")
    assert ended.code == 0, ended.stderr
    for expected in ("# 17.8 (2) vs 17.8", "pgbench -i -s 1", "## How to reproduce it", "pgversus compare 17.8 17.8"):
        assert expected in ended.stdout, ended.stdout
    assert command_line.run("report", "a", "b", "c").code == 2
