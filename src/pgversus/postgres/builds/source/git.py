"""Calls of git in repositories that may be anybody's: nothing that a repository's configuration names is run.

A repository says which programs watch its files, filter their contents, compare them, or fetch what is missing. Each is
switched off, by flags or by the command line, which comes before any file.
"""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from pgversus.errors import BuildError
from pgversus.host.commands import CLEAN_ENVIRONMENT, Finished, run

_OFF = (
    "--no-pager",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "status.submoduleSummary=false",
    "-c",
    "submodule.recurse=false",
)
_ENVIRONMENT = {
    **CLEAN_ENVIRONMENT,
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    # Of a repository without all its objects git would fetch them, from wherever and by whatever program that names.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}
_NONE_FOUND = 1
# What git config returns where nothing of that name is configured.
_UNREADABLE = "\ufffd"
# What was not UTF-8 in the output of a program.
_MOST_WORDS = 500


def git(directory: Path, *arguments: str, where: str = "") -> str:
    """Return what git prints in a repository of the user's; BuildError with its message when it is missing or fails.

    where: the commit that was asked for, for messages.
    """
    # The user's own configuration says which directories of others git may look into.
    environment = {**_ENVIRONMENT, "HOME": str(Path.home())}
    return _printed(directory, arguments, environment, where)


def git_in_own(directory: Path, *arguments: str) -> str:
    """The same in a repository that pgversus made: no configuration but its own holds there."""
    environment = {**_ENVIRONMENT, "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    return _printed(directory, arguments, environment, "")


def _printed(directory: Path, arguments: tuple[str, ...], environment: Mapping[str, str], where: str) -> str:
    if shutil.which("git", path=CLEAN_ENVIRONMENT["PATH"]) is None:
        raise _no_git(directory)
    filters = _filters_off(directory, environment, where)
    finished = run(["git", "-C", str(directory), *_OFF, *filters, *arguments], environment=environment)
    if not finished.succeeded:
        raise no_repository(directory, where, _words(finished))
    return finished.stdout


def _filters_off(directory: Path, environment: Mapping[str, str], where: str) -> Iterator[str]:
    """Flags that switch off each filter that is configured, by its name: git knows no other way."""
    listing = ("config", "-z", "--name-only", "--get-regexp", r"^filter\.")
    finished = run(["git", "-C", str(directory), *_OFF, *listing], environment=environment)
    if finished.exit_code not in (0, _NONE_FOUND):
        raise no_repository(directory, where, _words(finished))
    for name in dict.fromkeys(key.rpartition(".")[0] for key in finished.stdout.split("\0") if key):
        if "=" in name or _UNREADABLE in name:
            # -c takes what stands before the first one for the name, and names nothing that is not UTF-8.
            raise no_repository(directory, where, f"a filter whose name has an = in it, or is not UTF-8: {name}")
        for what in ("clean=", "smudge=", "process=", "required=false"):
            yield from ("-c", f"{name}.{what}")


def _words(finished: Finished) -> str:
    return (finished.stderr.strip() or finished.stdout.strip())[:_MOST_WORDS] or "no such commit, tag or branch"


def _no_git(directory: Path) -> BuildError:
    return BuildError(
        "git is needed to look at a git checkout",
        slug="build-missing-tools",
        where=str(directory),
        found="no git on this host",
        expected="git",
        to_do="install the package git, or give a tarball",
    )


def no_repository(directory: Path, ref: str, words: str) -> BuildError:
    """The error of a directory without a repository that git can read, or without the commit that was asked for."""
    return BuildError(
        "git cannot tell what is in this source tree" if not ref else f"git knows no {ref} there",
        slug="build-unknown-commit",
        where=f"{directory}@{ref}" if ref else str(directory),
        found=words,
        expected="a git repository, and a commit, tag or branch of it",
        to_do="see git log there; a path that has an @ in it is written with a slash at its end",
    )
