"""No program that a repository specifies runs while it is read or checked out."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pgversus.builds.source_tree import commit_source, diff_stat, git, tree_source
from pgversus.errors import BuildError
from pgversus.host.identity import server_user
from tests.unit.builds.test_source_tree import commit, plain_tree, write
from tests.unit.builds.test_source_tree import git as plain_git

pytestmark = pytest.mark.needs_tools
PROGRAM = """#!/bin/sh
: > "{marker}"
[ "$1" = end ] || exec cat
"""


class Trap:
    """A repository with two commits and a change, and programs that leave a marker when they run."""

    def __init__(self, directory: Path) -> None:
        self.repository = plain_tree(directory / "postgres")
        self.marker = directory / "ran"
        self.program = directory / "program"
        self.program.write_text(PROGRAM.format(marker=self.marker))
        self.program.chmod(0o755)
        plain_git(self.repository, "init", "--quiet", "--initial-branch=master")
        commit(self.repository, "src/backend/main.c", "int one;\n")
        plain_git(self.repository, "tag", "first")
        commit(self.repository, "src/backend/main.c", "int two;\n")
        write(self.repository, "src/backend/main.c", "int 3rd;\n")

    def configure(self, *names: str) -> None:
        for name in names:
            plain_git(self.repository, "config", name, str(self.program))

    def attribute(self, line: str, *, in_tree: bool) -> None:
        """Add an attribute in the tree, or only in this repository."""
        file = self.repository / (".gitattributes" if in_tree else ".git/info/attributes")
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{line}\n")


def watched(trap: Trap) -> None:
    trap.configure("core.fsmonitor")


def filtered(trap: Trap) -> None:
    trap.configure("filter.trap.clean", "filter.trap.smudge")
    plain_git(trap.repository, "config", "filter.trap.required", "true")
    trap.attribute("* filter=trap", in_tree=True)


def processed(trap: Trap) -> None:
    trap.configure("filter.A trap.clean", "filter.Other.process")
    trap.attribute("*.c filter=Other", in_tree=False)


def compared(trap: Trap) -> None:
    trap.configure("diff.external", "diff.trap.command", "diff.trap.textconv")
    trap.attribute("* diff=trap", in_tree=False)


def hooked(trap: Trap) -> None:
    hooks = trap.repository / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "post-index-change", "pre-auto-gc", "reference-transaction", "fsmonitor-watchman"):
        shutil.copy(trap.program, hooks / name)


def nested(trap: Trap) -> None:
    """A submodule, which has its own configuration."""
    inner = trap.repository / "inner"
    inner.mkdir()
    plain_git(inner, "init", "--quiet", "--initial-branch=master")
    commit(inner, "file", "text\n")
    plain_git(trap.repository, "-c", "advice.addEmbeddedRepo=false", "add", "inner")
    plain_git(trap.repository, "commit", "--quiet", "-m", "inner")
    plain_git(inner, "config", "core.fsmonitor", str(trap.program))
    write(inner, "file", "other\n")


def incomplete(trap: Trap) -> None:
    """A missing object, which git would fetch with a program specified in the address."""
    blob = plain_git(trap.repository, "rev-parse", "first:src/backend/main.c")
    (trap.repository / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for name, value in (
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", f"ext::{trap.program} end"),
        ("protocol.ext.allow", "always"),
    ):
        plain_git(trap.repository, "config", name, value)


TRAPS: dict[Callable[[Trap], None], tuple[str, ...]] = {
    watched: ("status",),
    filtered: ("status",),
    processed: ("diff", "--stat", "HEAD"),
    compared: ("diff", "HEAD"),
    hooked: ("checkout", "--quiet", "--force", "first"),
    nested: ("status",),
    incomplete: ("diff", "--stat", "first", "HEAD"),
}
"""Each trap with a git command that triggers it."""


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path)


@pytest.mark.parametrize("lay", TRAPS)
def test_no_program_of_a_repository_runs(trap: Trap, tmp_path: Path, lay: Callable[[Trap], None]) -> None:
    lay(trap)
    tree = tree_source(trap.repository)
    first, head = (commit_source(trap.repository, ref) for ref in ("first", "HEAD"))
    assert tree.facts.is_changed
    tree.lay_out(tmp_path / "tree", server_user())
    head.lay_out(tmp_path / "head", server_user())
    if lay is not incomplete:
        first.lay_out(tmp_path / "first", server_user())
        assert (tmp_path / "first" / "src" / "backend" / "main.c").read_text() == "int one;\n"
        assert diff_stat(first.facts, head.facts)
    else:
        with pytest.raises(BuildError):
            first.lay_out(tmp_path / "first", server_user())
        assert diff_stat(first.facts, head.facts) is None
    assert diff_stat(head.facts, tree.facts)
    assert (tmp_path / "tree" / "src" / "backend" / "main.c").read_text() == "int 3rd;\n"
    assert (tmp_path / "head" / "src" / "backend" / "main.c").read_text() == "int two;\n"
    assert not trap.marker.exists()


@pytest.mark.parametrize("lay", TRAPS)
def test_plain_git_would_run_the_programs(trap: Trap, lay: Callable[[Trap], None]) -> None:
    lay(trap)
    subprocess.run(["git", "-C", str(trap.repository), *TRAPS[lay]], check=False, capture_output=True)
    assert trap.marker.exists()


def test_a_filter_that_cannot_be_disabled_is_rejected(trap: Trap) -> None:
    trap.configure("filter.a=b.clean")
    with pytest.raises(BuildError) as caught:
        tree_source(trap.repository)
    assert (caught.value.slug, "filter.a=b" in caught.value.found) == ("build-unknown-commit", True)


def test_filters_of_the_user_do_not_affect_the_build(
    trap: Trap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attribute in an untrusted tree would pass files, with an address from that tree, to the user's filters."""
    (tmp_path / ".gitconfig").write_text(f'[filter "lfs"]\n\tclean = {trap.program}\n\tsmudge = {trap.program}\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    trap.attribute("* filter=lfs", in_tree=True)
    assert git(trap.repository, "config", "filter.lfs.clean").strip() == ""
    tree_source(trap.repository).lay_out(tmp_path / "tree", server_user())
    commit_source(trap.repository, "HEAD").lay_out(tmp_path / "head", server_user())
    assert not trap.marker.exists()
