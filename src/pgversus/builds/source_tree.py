"""Source trees and commits on this host: contents, copies, and differences between commits.

The configuration of a repository can specify programs that watch its files, filter or compare their contents, or fetch
missing objects. All are disabled by environment variables or on the command line, which override any file.

The user's trees are never written to: builds use a copy, or a separate repository that borrows its objects.
"""

import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pgversus.builds.model import SourceCode, SourceFacts
from pgversus.errors import BuildError
from pgversus.host.commands import CLEAN_ENVIRONMENT, Finished, run
from pgversus.host.identity import ServerUser

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
    # git would fetch missing objects from any address and with any program that the repository specifies.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}
_NONE_FOUND = 1
# Exit code of git config if no name matches.
_UNREADABLE = "\ufffd"
# Replaces invalid UTF-8 in the output of a program.
_MOST_WORDS = 500


def git(directory: Path, *arguments: str, where: str = "") -> str:
    """Run git in a repository of the user and return its output; BuildError if git is missing or fails.

    where: the requested commit, for messages.
    """
    # HOME: the user's configuration lists directories of other users that git may access.
    environment = {**_ENVIRONMENT, "HOME": str(Path.home())}
    return _printed(directory, arguments, environment, where)


def git_in_own(directory: Path, *arguments: str) -> str:
    """Run git in a repository created by pgversus, without any other configuration, and return its output."""
    environment = {**_ENVIRONMENT, "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    return _printed(directory, arguments, environment, "")


def _printed(directory: Path, arguments: tuple[str, ...], environment: Mapping[str, str], where: str) -> str:
    if shutil.which("git", path=CLEAN_ENVIRONMENT["PATH"]) is None:
        raise _no_git(directory)
    filters = _filters_off(directory, environment, where)
    finished = run(["git", "-C", str(directory), *_OFF, *filters, *arguments], environment=environment)
    if not finished.succeeded:
        raise no_repository(directory, where, _failure_text(finished))
    return finished.stdout


def _filters_off(directory: Path, environment: Mapping[str, str], where: str) -> Iterator[str]:
    """Yield flags that disable each configured filter by name; git has no option to disable all."""
    listing = ("config", "-z", "--name-only", "--get-regexp", r"^filter\.")
    finished = run(["git", "-C", str(directory), *_OFF, *listing], environment=environment)
    if finished.exit_code not in (0, _NONE_FOUND):
        raise no_repository(directory, where, _failure_text(finished))
    for name in dict.fromkeys(key.rpartition(".")[0] for key in finished.stdout.split("\0") if key):
        if "=" in name or _UNREADABLE in name:
            # -c ends the name at the first "=", and invalid UTF-8 cannot be passed.
            raise no_repository(directory, where, f"a filter whose name contains = or is not UTF-8: {name}")
        for what in ("clean=", "smudge=", "process=", "required=false"):
            yield from ("-c", f"{name}.{what}")


def _failure_text(finished: Finished) -> str:
    return (finished.stderr.strip() or finished.stdout.strip())[:_MOST_WORDS] or "no such commit, tag or branch"


def _no_git(directory: Path) -> BuildError:
    return BuildError(
        "git is required to read a git checkout",
        slug="build-missing-tools",
        where=str(directory),
        found="no git on this host",
        expected="git",
        to_do="install the package git, or use a tarball",
    )


def no_repository(directory: Path, ref: str, words: str) -> BuildError:
    """Return the error for a directory without a readable git repository or without the requested commit."""
    return BuildError(
        "git cannot read this source tree" if not ref else f"git cannot find {ref} in this repository",
        slug="build-unknown-commit",
        where=f"{directory}@{ref}" if ref else str(directory),
        found=words,
        expected="a git repository and a commit, tag or branch in it",
        to_do="check the name with git log in that repository; a path that contains @ must end with a slash",
    )


_CONFIGURE = "configure"
_BUILD_FILES = (_CONFIGURE, "configure.ac", "configure.in", "meson.build")
_MADE_IN_PLACE = ("GNUmakefile", "config.status", "config.log", "config.cache")
# Left by configure in a tree that was built in place.
_COMPILED = frozenset({".o", ".a", ".so", ".bc"})
# Submodules have their own configuration, which git would obey; PostgreSQL has no submodules.
_STATUS = ("status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=all")
_DIFF = ("diff", "--stat", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all")


def is_tree(path: Path) -> bool:
    """Return whether a directory contains PostgreSQL's source."""
    return (path / "src" / "backend").is_dir() and any((path / name).is_file() for name in _BUILD_FILES)


def tree_source(path: Path) -> SourceCode:
    """Return a tree as a source, with uncommitted changes; BuildError if git fails."""
    here = path.resolve()
    if not (here / ".git").exists():
        plain = SourceFacts(
            words=f"tree {path}",
            sha256=_tree_sha256(here, _plain_files(here)),
            has_configure=(here / _CONFIGURE).is_file(),
        )
        return _Tree(here, plain, is_git=False)
    commit = git(here, "rev-parse", "HEAD").strip()
    is_changed = bool(git(here, *_STATUS).strip())
    facts = SourceFacts(
        words=f"tree {path} at commit {commit[:12]}{' with changes' if is_changed else ''}",
        sha256=_tree_sha256(here, _git_files(here)),
        repository=str(here),
        commit=commit,
        is_changed=is_changed,
        has_configure=(here / _CONFIGURE).is_file(),
    )
    return _Tree(here, facts, is_git=True)


def commit_source(path: Path, ref: str) -> SourceCode:
    """Return a commit as a source; BuildError if the repository or commit does not exist."""
    here = path.resolve()
    if not here.is_dir():
        raise no_repository(here, ref, "no such directory")
    commit = git(here, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}", where=ref).strip()
    tree = git(here, "rev-parse", f"{commit}^{{tree}}").strip()
    facts = SourceFacts(
        words=f"commit {commit[:12]} of {path}" + (f" ({ref})" if not commit.startswith(ref) else ""),
        # Commits with the same files are the same source.
        sha256=hashlib.sha256(tree.encode()).hexdigest(),
        repository=str(here),
        commit=commit,
        has_configure=bool(git(here, "ls-tree", "--name-only", commit, _CONFIGURE).strip()),
    )
    return _Commit(here, facts)


def diff_stat(baseline: SourceFacts, contender: SourceFacts) -> str | None:
    """Return the output of git diff --stat between two sources; None if their repositories differ or git fails."""
    if baseline.repository is None or baseline.repository != contender.repository or baseline.is_changed:
        return None
    commits = [baseline.commit or "", *([] if contender.is_changed else [contender.commit or ""])]
    try:
        # git diff would otherwise refresh the user's index.
        quiet = ("-c", "diff.autoRefreshIndex=false")
        here = Path(baseline.repository)
        changed = git(here, *quiet, *_DIFF, *commits, "--").rstrip()
        return "\n".join(part for part in (*_new_files(here, contender), changed) if part) or "no difference"
    except BuildError:
        return None


def _new_files(repository: Path, source: SourceFacts) -> list[str]:
    """Return a line for each untracked file if a tree has changes."""
    if not source.is_changed:
        return []
    listed = git(repository, "ls-files", "-z", "--others", "--exclude-standard")
    return [f" {name} (new)" for name in listed.split("\0") if name]


class _Tree:
    """A source tree, including uncommitted changes."""

    def __init__(self, path: Path, facts: SourceFacts, *, is_git: bool) -> None:
        self.facts = facts
        self._path = path
        self._is_git = is_git

    def lay_out(self, target: Path, user: ServerUser) -> None:
        """Copy the tree; BuildError if it has changed since it was read."""
        del user
        files = _git_files(self._path) if self._is_git else _plain_files(self._path)
        for name in files:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self._path / name, target / name, follow_symlinks=False)
        if _tree_sha256(target, files) != self.facts.sha256:
            raise BuildError(
                "the source tree changed while it was copied",
                slug="build-tree-changed",
                where=str(self._path),
                found="files that changed during the copy",
                expected="a tree that does not change for a few seconds",
                to_do="run the command again, or use a commit (./tree@REF), which cannot change",
            )


class _Commit:
    """A commit of a repository."""

    def __init__(self, path: Path, facts: SourceFacts) -> None:
        self.facts = facts
        self._path = path

    def lay_out(self, target: Path, user: ServerUser) -> None:
        """Check out the files with a temporary repository that borrows the objects of the user's repository."""
        del user
        target.mkdir(parents=True)
        objects = self._path / git(self._path, "rev-parse", "--git-path", "objects").strip()
        with tempfile.TemporaryDirectory(prefix="clone-", dir=target.parent) as name:
            # Not a clone, which would contain only the newest commit of a shallow repository.
            clone = Path(name) / "clone"
            git_in_own(target.parent, "init", "--quiet", "--template=", str(clone))
            (clone / ".git/objects/info/alternates").write_text(f"{objects}\n", encoding="utf-8")
            commit = str(self.facts.commit)
            git_in_own(clone, f"--work-tree={target}", "checkout", "--quiet", "--force", commit, "--", ".")
        if not is_tree(target):
            raise no_tree(f"{self._path}@{self.facts.commit}", "a commit without src/backend")


def no_tree(where: str, found: str) -> BuildError:
    """Return the error for a path without source."""
    return BuildError(
        "PostgreSQL's source was not found",
        slug="build-no-tree",
        where=where,
        found=found,
        expected="a source tree, a git checkout, or a tarball",
        to_do="use the directory that contains PostgreSQL's configure or meson.build",
    )


def _git_files(tree: Path) -> list[str]:
    """Return tracked and untracked files, except ignored ones, in order."""
    listed = git(tree, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return sorted({name for name in listed.split("\0") if name and (tree / name).is_file()})


def _plain_files(tree: Path) -> list[str]:
    """Return all files except compiled ones, in order."""
    if made := [name for name in _MADE_IN_PLACE if (tree / name).exists()]:
        raise BuildError(
            "this source tree was configured in place and cannot be built in a separate directory",
            slug="build-tree-configured",
            where=str(tree),
            found=", ".join(made),
            expected="a freshly unpacked tree, or a git checkout",
            to_do="run make distclean there, or use the tarball",
        )
    found = (path for path in tree.rglob("*") if path.is_file() and path.suffix not in _COMPILED)
    return sorted(str(path.relative_to(tree)) for path in found)


def _tree_sha256(tree: Path, names: Sequence[str]) -> str:
    """Return the SHA-256 over the names, contents and executable bits of these files."""
    whole = hashlib.sha256()
    for name in names:
        path = tree / name
        content = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
        is_program = not path.is_symlink() and bool(path.stat().st_mode & 0o100)
        whole.update(f"{name}\0{is_program}\0{hashlib.sha256(content).hexdigest()}\n".encode(errors="surrogateescape"))
    return whole.hexdigest()
