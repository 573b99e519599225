"""Resumed results: one run at a time per folder, and only with the inputs of the earlier blocks."""

import signal
from pathlib import Path

import pytest

from tests.live.conftest import CommandLine, somebodys_server
from tests.live.test_studies import STUDY, trials


def test_a_folder_in_use_by_a_live_run_is_left_alone(command_line: CommandLine) -> None:
    command_line.write("s.toml", STUDY.replace("blocks = 3", "blocks = 50"))
    results = command_line.directory / "pgversus-results" / "s"
    first = command_line.start("run", "s.toml", "--seed", "5")
    # Long before the first block.
    command_line.wait_for((results / "lock").exists)
    for arguments in ((), ("--new",)):
        second = command_line.run("run", "s.toml", "--seed", "5", *arguments)
        assert second.code == 5
        assert "error[store-in-use]" in second.stderr
        assert "loading" not in second.stderr
    command_line.wait_for(lambda: (results / "results.sqlite").exists() and trials(results))
    assert command_line.run("run", "s.toml", "--seed", "5", "--new").code == 5
    assert [path.name for path in results.parent.iterdir()] == ["s"]
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)
    assert first.returncode == 130
    kept = trials(results)
    restarted = command_line.start("run", "s.toml", "--new")
    command_line.wait_for(lambda: len(list(results.parent.iterdir())) == 2 and (results / "results.sqlite").exists())
    restarted.send_signal(signal.SIGINT)
    _, stderr = restarted.communicate(timeout=60)
    (aside,) = results.parent.glob("s-until-*")
    assert f"the earlier results are now in pgversus-results/{aside.name}" in stderr
    assert trials(aside) == kept


FULL_AT_FIRST = r"""
[datasets.good]
scale = 1

[datasets.big]
sql = '''
\set room `test -e {room} && echo 1 || echo 0`
\if :room
CREATE TABLE t AS SELECT 1 AS x;
\else
DO $$ BEGIN RAISE 'could not extend file "base/5/16385": No space left on device'; END $$;
\endif
'''
"""


@pytest.mark.long
def test_a_context_that_failed_on_a_full_disk_is_retried_when_there_is_space(
    command_line: CommandLine, open_directory: Path
) -> None:
    room = open_directory / "room"
    study = STUDY.replace("[dataset]\nscale = 1\n", FULL_AT_FIRST.replace("{room}", str(room)))
    study = study.replace('builtin = "select-only"', 'builtin = "select-only"\ndataset = "good"')
    study = study.replace('sql = "SELECT count(*) FROM pgbench_branches;"', 'sql = "TABLE t;"\ndataset = "big"')
    command_line.write("s.toml", study.replace("blocks = 3", "blocks = 2"))
    ended = command_line.run("run", "s.toml", "--trust", "--seed", "5")
    assert ended.code == 3, ended.stderr
    assert "error[host-disk-full]" in ended.stderr
    assert "base/5/16385" in ended.stderr
    room.touch()
    again = command_line.run("run", "s.toml", "--trust", "--seed", "5", "--json")
    assert again.code == 0, again.stderr
    assert again.document["not_measured"] == []
    assert len(trials(command_line.directory / "pgversus-results" / "s")) == 2 * 2 * 2


@pytest.mark.long
def test_data_on_an_external_server_is_loaded_once_and_used_unchanged_afterwards(command_line: CommandLine) -> None:
    results = command_line.directory / "pgversus-results" / "s"
    with somebodys_server("17.8") as uri:
        study = STUDY.replace(
            'server = ["17.8", "17.8"]', f'server = ["{uri}"]\ndefault_statistics_target = ["10", "1000"]'
        )
        # One context changes rows, so that after resuming, the data of neither context is as loaded.
        study = 'compare = "default_statistics_target"\n' + study.replace("select-only", "tpcb-like")
        command_line.write("s.toml", study)
        first = command_line.start("run", "s.toml", "--trust", "--seed", "5")
        command_line.wait_for(lambda: (results / "results.sqlite").exists() and trials(results))
        first.send_signal(signal.SIGINT)
        _, said = first.communicate(timeout=60)
        assert said.count("loading ") == 1
        assert len(trials(results)) < 12
        ended = command_line.run("run", "s.toml", "--trust", "--seed", "5", "--json")
    assert ended.code == 0, ended.stderr
    assert "loading " not in ended.stderr
    blocks = [(context, block) for context, block, arm, _ in trials(results) if arm == 0]
    assert (blocks, ended.document["not_measured"]) == ([(c, b) for c in (1, 2) for b in (1, 2, 3)], []), ended.stderr


def test_data_loaded_on_an_external_server_is_recorded_before_the_first_load_is_tried(
    command_line: CommandLine,
) -> None:
    with somebodys_server("17.8") as uri:
        text = f"""
            title = "Nothing to read"
            compare = "work_mem"
            [factors]
            server = ["{uri}"]
            work_mem = ["4MB", "8MB"]
            [dataset]
            scale = 1
            [workload]
            sql = "TABLE nowhere;"
        """
        command_line.write("s.toml", text)
        ended = [command_line.run("run", "s.toml", "--trust") for _ in range(2)]
    for one in ended:
        assert one.code == 4, one.stderr
        assert 'relation "nowhere" does not exist' in one.stderr
    assert ["loading " in one.stderr for one in ended] == [True, False]
