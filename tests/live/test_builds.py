"""Builds from source: they have the requested options, failures leave nothing, and commits can be compared.

The release itself and a build with 32 kB blocks are built before these tests (Makefile): each takes minutes.
"""

import json
import re
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pgversus.builds.tarballs import is_archive
from pgversus.builds.unpacking import unpack
from pgversus.host.identity import server_user
from tests.live.conftest import QUICK, UNOPTIMIZED, CommandLine

pytestmark = pytest.mark.needs_tools

MAJOR = "17"
RELEASE = f"{MAJOR}{UNOPTIMIZED}"
LARGE = f"{MAJOR}+blocksize=32{UNOPTIMIZED}"
SEQSCAN = "SELECT count(*) FROM pgbench_accounts WHERE abalance <> 0;"
PLANTED = "\tfor (volatile int wasted = 0; wasted < 300; wasted++)\n\t\t;\t\t\t\t\t\t/* {unique} */\n"
"""A busy loop of two lines, with a comment that makes the source unique, so that no cache has a build of it."""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Iterator[Path]:
    """A git repository of the release whose second commit, `slow`, wastes time in every row of a scan."""
    archive = max(path for path in shared_cache.glob(f"sources/postgresql-{MAJOR}.*") if is_archive(path))
    home = tmp_path_factory.mktemp("source")
    unpack(archive, home / "unpacked", server_user())
    (found,) = (home / "unpacked").iterdir()
    git(found, "init", "--quiet", "--initial-branch=master")
    commit(found, "as it was published")
    git(found, "tag", "fast")
    scan = found / "src/backend/executor/nodeSeqscan.c"
    text = scan.read_text()
    begins = re.search(r"^SeqNext\(SeqScanState \*node\)\n\{\n(?:\t[A-Z].*;\n)+", text, re.MULTILINE)
    assert begins is not None
    scan.write_text(text[: begins.end()] + PLANTED.format(unique=uuid.uuid4()) + text[begins.end() :])
    commit(found, "waste time in every row")
    git(found, "branch", "slow")
    yield found
    shutil.rmtree(home, ignore_errors=True)


def git(directory: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=tests", "-c", "user.email=tests@localhost", "-c", "commit.gpgsign=false")
    return subprocess.run(
        ["git", *identity, *arguments], cwd=directory, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(tree: Path, words: str) -> None:
    git(tree, "add", "--all", "--force")
    git(tree, "commit", "--quiet", "--message", words)


def arms_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    arms: list[dict[str, Any]] = document["arms"]
    return arms


def builds_in(line: CommandLine) -> set[str]:
    return {path.name for path in (line.cache / "builds").iterdir()}


def test_builds_with_different_block_sizes_have_the_same_rows_and_memory(command_line: CommandLine) -> None:
    script = command_line.write("seqscan.sql", SEQSCAN)
    ended = command_line.compare(RELEASE, LARGE, "-i", "-s", "1", "-f", script, *QUICK)
    assert ended.code == 0, ended.stderr
    usual, large = arms_of(ended.comparison)
    assert (usual["compiled_in"]["block_size"], large["compiled_in"]["block_size"]) == ("8192", "32768")
    assert large["built_from"]["options"] == ["blocksize=32", "cflags=-O0"]
    assert usual["origin"] == large["origin"] == "source"
    assert usual["built_from"]["source_sha256"] == large["built_from"]["source_sha256"]
    assert re.fullmatch(r"postgresql-17\.\d+\.tar\.\w+", usual["built_from"]["source"])
    assert large["settings"]["effective_cache_size"] == "4194304kB"
    # Rows of both were counted and hashed, otherwise the run would be refused; only the file sizes differ.
    assert usual["relation_bytes"]["public.pgbench_accounts"] != large["relation_bytes"]["public.pgbench_accounts"]
    assert [slug for slug in ended.caveats if slug in ("mixed-builds", "unequal-settings")] == []
    shown = command_line.run("report", "results", "--verbose")
    assert "+blocksize=32" in shown.stdout
    assert re.search(r"^pgbench_accounts +[\d.]+ MB", shown.stdout, re.MULTILINE)


@pytest.mark.long
@pytest.mark.measures
def test_a_slowdown_between_two_commits_is_detected(command_line: CommandLine, tree: Path) -> None:
    script = command_line.write("seqscan.sql", SEQSCAN)
    before = builds_in(command_line)
    # Two concurrent builds of one commit compile it once: the other process waits.
    pair = [command_line.start("servers", "build", f"{tree}@slow{UNOPTIMIZED}") for _ in range(2)]
    reported = [process.communicate(timeout=900) for process in pair]
    assert [process.returncode for process in pair] == [0, 0], reported
    words = "".join(stderr for _, stderr in reported)
    assert len(re.findall(r"^building \S+@slow\S* from", words, re.MULTILINE)) == 1
    assert "another pgversus is building" in words
    (made,) = builds_in(command_line) - before
    status = git(tree, "status", "--porcelain"), git(tree, "worktree", "list"), git(tree, "branch", "--all")
    ended = command_line.compare(
        *(f"{tree}@{commit}{UNOPTIMIZED}" for commit in ("fast", "slow")),
        *("-i", "-f", script, "--no-plans", "--blocks", "4", *QUICK[2:]),
    )
    assert ended.code == 0, ended.stderr
    (verdict,) = ended.comparison["verdicts"]
    assert verdict["verdict"] == "slower"
    fast, slow = arms_of(ended.comparison)
    assert fast["built_from"]["commit"] == git(tree, "rev-parse", "fast")
    assert slow["built_from"]["commit"] == git(tree, "rev-parse", "slow")
    assert fast["built_from"]["diff_stat"] is None
    assert "nodeSeqscan.c" in slow["built_from"]["diff_stat"]
    assert "1 file changed, 2 insertions(+)" in slow["built_from"]["diff_stat"]
    assert "1 file changed, 2 insertions(+)" in command_line.run("report", "results", "--verbose").stdout
    # Nothing was written to the user's repository.
    assert status == (git(tree, "status", "--porcelain"), git(tree, "worktree", "list"), git(tree, "branch", "--all"))
    assert command_line.run("servers", "remove", made).code == 0
    assert made not in builds_in(command_line)


def test_a_failed_compilation_reports_its_first_error_and_leaves_no_build(
    command_line: CommandLine, tree: Path
) -> None:
    broken = command_line.directory / "broken"
    git(tree, "clone", "--quiet", "--shared", "--branch", "slow", str(tree), str(broken))
    (broken / "src/common/string.c").write_text("this is not C;\n")
    before = builds_in(command_line)
    ended = command_line.run("servers", "build", f"{broken}{UNOPTIMIZED}")
    assert ended.code == 3
    assert "error[build-failed]" in ended.stderr
    assert re.search(r"found: +string\.c:1:\d+: error: |found: +\S*/string\.c:1:\d+: error: ", ended.stderr)
    assert builds_in(command_line) == before
    log = re.search(r"see the full log in (\S+)", ended.stderr)
    assert log is not None
    assert "this is not C" in Path(log[1]).read_text()


def test_an_invalid_tarball_is_rejected(command_line: CommandLine) -> None:
    before = builds_in(command_line)
    name = command_line.write("postgresql-17.8.tar.bz2", "no tarball\n")
    ended = command_line.run("compare", RELEASE, f"./{name}", "-i", "-S", *QUICK)
    assert ended.code == 3
    assert "error[build-no-tarball]" in ended.stderr
    assert builds_in(command_line) == before


def test_an_unknown_configure_option_is_rejected_with_configures_message(command_line: CommandLine) -> None:
    before = builds_in(command_line)
    ended = command_line.run("servers", "build", f"{RELEASE}+with-nothing-known")
    assert ended.code == 3
    assert "error[build-failed]" in ended.stderr
    assert "unrecognized options: --with-nothing-known" in ended.stderr
    assert builds_in(command_line) == before


def test_servers_lists_builds_and_verify_detects_a_changed_file(command_line: CommandLine) -> None:
    listed = json.loads(command_line.run("servers", "--json").stdout)["servers"]
    (large,) = [one for one in listed if one["origin"] == "source" and one["options"] == f"+blocksize=32{UNOPTIMIZED}"]
    assert (large["block_size_bytes"], large["version"].split(".")[0]) == (32768, MAJOR)
    assert large["flags"] == "-O0"
    mine = command_line.cache / "mine"
    (mine / "builds").mkdir(parents=True)
    mine.chmod(0o755)
    shutil.copytree(large["directory"], mine / "builds" / large["name"], symlinks=True)
    assert command_line.run("servers", "verify", PGVERSUS_CACHE=str(mine)).code == 0
    with (mine / "builds" / large["name"] / "bin" / "initdb").open("ab") as program:
        program.write(b"\0")
    ended = command_line.run("servers", "verify", large["name"], PGVERSUS_CACHE=str(mine))
    assert ended.code == 3
    assert "changed since the build: bin/initdb" in ended.stdout
    assert command_line.run("servers", "remove", large["name"], PGVERSUS_CACHE=str(mine)).code == 0
    assert list((mine / "builds").iterdir()) == []
