"""Contents and copies of source trees and commits; the user's files are never modified."""

import shutil
import subprocess
from pathlib import Path

import pytest

from pgversus.builds.source_tree import commit_source, diff_stat, is_tree, tree_source
from pgversus.errors import BuildError, ExitCode
from pgversus.host.identity import server_user

pytestmark = pytest.mark.needs_tools
FILES = {"configure": "#!/bin/sh\n", "src/backend/main.c": "int one;\n", ".gitignore": "*.o\n"}


def git(repository: Path, *arguments: str) -> str:
    config = ("-c", "user.name=me", "-c", "user.email=me@example", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(repository), *config, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def write(tree: Path, name: str, text: str) -> None:
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    (tree / name).write_text(text)


def plain_tree(tree: Path) -> Path:
    for name, text in FILES.items():
        write(tree, name, text)
    (tree / "configure").chmod(0o755)
    return tree


def commit(repository: Path, name: str, text: str) -> str:
    write(repository, name, text)
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "-m", name)
    return git(repository, "rev-parse", "HEAD")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = plain_tree(tmp_path_factory.mktemp("template"))
    git(repository, "init", "--quiet", "--initial-branch=master")
    commit(repository, "src/backend/main.c", "int one;\n")
    git(repository, "tag", "-m", "annotated", "first")
    git(repository, "branch", "feature/x")
    commit(repository, "src/backend/two.c", "int two;\n")
    return repository


@pytest.fixture
def repository(template: Path, tmp_path: Path) -> Path:
    """A repository with two commits: `first`, and `master` with one more file."""
    return Path(shutil.copytree(template, tmp_path / "postgres", symlinks=True))


def laid_out(tree: Path) -> dict[str, str]:
    return {str(path.relative_to(tree)): path.read_text() for path in tree.rglob("*") if path.is_file()}


def everything(repository: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in repository.rglob("*") if path.is_file()}


def test_a_tree_has_a_backend_and_a_build_system(tmp_path: Path) -> None:
    assert not is_tree(tmp_path)
    assert not is_tree(tmp_path / "nowhere")
    (tmp_path / "src" / "backend").mkdir(parents=True)
    assert not is_tree(tmp_path)
    for name in ("configure", "meson.build", "configure.in"):
        (tmp_path / name).touch()
        assert is_tree(tmp_path)
        (tmp_path / name).unlink()


@pytest.mark.parametrize("ref", ["first", "feature/x", "master~1", "HEAD^"])
def test_a_commit_can_be_given_by_any_name_that_git_accepts(repository: Path, ref: str) -> None:
    first = git(repository, "rev-parse", "first^{commit}")
    facts = commit_source(repository, ref).facts
    assert (facts.commit, facts.repository, facts.is_changed) == (first, str(repository), False)
    assert facts.words == f"commit {first[:12]} of {repository} ({ref})"
    assert facts.sha256 == commit_source(repository, first).facts.sha256
    assert commit_source(repository, first[:9]).facts.words == f"commit {first[:12]} of {repository}"


def test_commits_with_the_same_files_are_the_same_source(repository: Path) -> None:
    git(repository, "commit", "--quiet", "--allow-empty", "-m", "nothing")
    one, same, other = (commit_source(repository, ref).facts for ref in ("HEAD", "HEAD~1", "first"))
    assert one.sha256 == same.sha256 != other.sha256
    assert one.commit != same.commit


@pytest.mark.parametrize("ref", ["nothing", "first:configure", "-h", "--all", "deadbeef"])
def test_an_unknown_commit_is_reported_with_its_repository(repository: Path, ref: str) -> None:
    with pytest.raises(BuildError) as caught:
        commit_source(repository, ref)
    error = caught.value
    assert (error.slug, error.exit_code) == ("build-unknown-commit", ExitCode.HOST)
    assert error.what == f"git cannot find {ref} in this repository"
    assert error.where == f"{repository}@{ref}"
    assert error.found
    assert "commit, tag or branch" in error.expected
    assert "with a slash" in error.to_do


def test_a_directory_that_is_not_a_repository_has_no_commits(tmp_path: Path) -> None:
    with pytest.raises(BuildError) as caught:
        commit_source(plain_tree(tmp_path / "plain"), "master")
    assert caught.value.slug == "build-unknown-commit"
    assert "not a git repository" in caught.value.found
    with pytest.raises(BuildError) as caught:
        commit_source(tmp_path / "nowhere", "master")
    assert (caught.value.where, caught.value.found) == (f"{tmp_path / 'nowhere'}@master", "no such directory")


def test_a_repository_without_commits_is_reported(tmp_path: Path) -> None:
    git(plain_tree(tmp_path), "init", "--quiet")
    with pytest.raises(BuildError) as caught:
        tree_source(tmp_path)
    assert (caught.value.slug, caught.value.where) == ("build-unknown-commit", str(tmp_path))
    assert "HEAD" in caught.value.found


def test_a_commit_is_laid_out_independently_of_the_checkout(repository: Path, tmp_path: Path) -> None:
    write(repository, "src/backend/main.c", "int changed;\n")
    source = commit_source(repository, "first")
    source.lay_out(tmp_path / "out" / "tree", server_user())
    assert laid_out(tmp_path / "out" / "tree") == FILES
    assert (tmp_path / "out" / "tree" / "configure").stat().st_mode & 0o100
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["tree"]


def test_a_commit_that_is_on_no_branch_is_laid_out(repository: Path, tmp_path: Path) -> None:
    lost = commit(repository, "src/backend/lost.c", "int lost;\n")
    git(repository, "reset", "--quiet", "--hard", "HEAD~1")
    commit_source(repository, lost).lay_out(tmp_path / "tree", server_user())
    assert (tmp_path / "tree" / "src" / "backend" / "lost.c").exists()


def test_a_commit_of_a_shallow_repository_is_laid_out(repository: Path, tmp_path: Path) -> None:
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth", "1", repository.as_uri(), str(shallow))
    git(shallow, "fetch", "--quiet", "--depth", "1", "origin", "feature/x:refs/remotes/origin/x")
    commit_source(shallow, "origin/x").lay_out(tmp_path / "tree", server_user())
    assert "src/backend/two.c" not in laid_out(tmp_path / "tree")


def test_nothing_is_written_into_a_repository(repository: Path, tmp_path: Path) -> None:
    # Later than the index, so that git would refresh it.
    write(repository, "src/backend/main.c", "int one;\n")
    write(repository, "src/backend/new.c", "int new;\n")
    before = everything(repository)
    tree_source(repository).lay_out(tmp_path / "one", server_user())
    commit_source(repository, "first").lay_out(tmp_path / "two", server_user())
    diff_stat(commit_source(repository, "first").facts, commit_source(repository, "master").facts)
    assert everything(repository) == before
    assert git(repository, "worktree", "list").count("\n") == 0
    assert git(repository, "status", "--porcelain") == "?? src/backend/new.c"


def test_a_clean_tree_is_its_commit(repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD")
    facts = tree_source(repository).facts
    assert (facts.commit, facts.is_changed, facts.repository) == (head, False, str(repository))
    assert facts.words == f"tree {repository} at commit {head[:12]}"


@pytest.mark.parametrize(
    ("name", "text"), [("src/backend/main.c", "int changed;\n"), ("src/backend/new.c", "int new;\n")]
)
def test_a_tree_includes_uncommitted_changes(repository: Path, tmp_path: Path, name: str, text: str) -> None:
    clean = tree_source(repository).facts
    write(repository, name, text)
    source = tree_source(repository)
    assert source.facts.is_changed
    assert source.facts.words.endswith("with changes")
    assert (source.facts.commit, source.facts.sha256 == clean.sha256) == (clean.commit, False)
    source.lay_out(tmp_path / "tree", server_user())
    assert laid_out(tmp_path / "tree") == {**FILES, "src/backend/two.c": "int two;\n", name: text}
    assert (tmp_path / "tree" / "configure").stat().st_mode & 0o100


def test_ignored_and_removed_files_are_not_part_of_a_tree(repository: Path, tmp_path: Path) -> None:
    before = tree_source(repository).facts.sha256
    write(repository, "src/backend/main.o", "compiled")
    assert tree_source(repository).facts.sha256 == before
    (repository / "src" / "backend" / "two.c").unlink()
    tree_source(repository).lay_out(tmp_path / "tree", server_user())
    assert laid_out(tmp_path / "tree") == FILES


def test_the_executable_bit_is_part_of_a_tree(repository: Path) -> None:
    before = tree_source(repository).facts.sha256
    (repository / "configure").chmod(0o644)
    assert tree_source(repository).facts.sha256 != before


def test_symbolic_links_are_hashed_and_copied_as_links(repository: Path, tmp_path: Path) -> None:
    (repository / "src" / "backend" / "link.c").symlink_to("main.c")
    before = tree_source(repository)
    before.lay_out(tmp_path / "tree", server_user())
    assert str((tmp_path / "tree" / "src" / "backend" / "link.c").readlink()) == "main.c"
    (repository / "src" / "backend" / "link.c").unlink()
    (repository / "src" / "backend" / "link.c").symlink_to("two.c")
    assert tree_source(repository).facts.sha256 != before.facts.sha256


@pytest.mark.parametrize("is_git", [True, False])
def test_a_tree_changed_since_it_was_read_is_rejected(repository: Path, tmp_path: Path, *, is_git: bool) -> None:
    if not is_git:
        shutil.rmtree(repository / ".git")
    source = tree_source(repository)
    write(repository, "src/backend/main.c", "int later;\n")
    with pytest.raises(BuildError) as caught:
        source.lay_out(tmp_path / "tree", server_user())
    assert (caught.value.slug, caught.value.where) == ("build-tree-changed", str(repository))
    assert "@REF" in caught.value.to_do


def test_a_tree_without_git_includes_all_files_except_compiled_ones(tmp_path: Path) -> None:
    tree = plain_tree(tmp_path / "postgresql-17.8")
    facts = tree_source(tree).facts
    assert (facts.words, facts.repository, facts.commit) == (f"tree {tree}", None, None)
    write(tree, "src/backend/main.o", "compiled")
    write(tree, "src/backend/new.c", "int new;\n")
    assert tree_source(tree).facts.sha256 != facts.sha256
    tree_source(tree).lay_out(tmp_path / "out", server_user())
    assert laid_out(tmp_path / "out") == {**FILES, "src/backend/new.c": "int new;\n"}


def test_a_tree_configured_in_place_is_rejected(tmp_path: Path) -> None:
    tree = plain_tree(tmp_path)
    write(tree, "config.status", "")
    write(tree, "GNUmakefile", "")
    with pytest.raises(BuildError) as caught:
        tree_source(tree)
    assert (caught.value.slug, caught.value.where) == ("build-tree-configured", str(tree))
    assert caught.value.found == "GNUmakefile, config.status"
    assert "make distclean" in caught.value.to_do


def test_the_difference_of_two_commits_is_that_of_git(repository: Path) -> None:
    first, master = (commit_source(repository, ref).facts for ref in ("first", "master"))
    said = diff_stat(first, master)
    assert said is not None
    assert "src/backend/two.c | 1 +" in said
    assert said.splitlines()[-1].strip() == "1 file changed, 1 insertion(+)"
    back = diff_stat(master, first)
    assert back is not None
    assert "1 deletion(-)" in back
    assert diff_stat(first, first) == "no difference"


def test_uncommitted_changes_are_part_of_the_difference(repository: Path) -> None:
    write(repository, "src/backend/main.c", "int changed;\n")
    first, changed = commit_source(repository, "first").facts, tree_source(repository).facts
    said = diff_stat(first, changed)
    assert said is not None
    assert "2 files changed" in said
    assert diff_stat(changed, first) is None, "git has no difference from a baseline that is not a commit"


def test_sources_of_different_repositories_have_no_difference(repository: Path, tmp_path: Path) -> None:
    shutil.copytree(repository, tmp_path / "other")
    other = commit_source(tmp_path / "other", "first").facts
    plain = tree_source(plain_tree(tmp_path / "plain")).facts
    here = commit_source(repository, "first").facts
    assert [diff_stat(here, one) for one in (other, plain)] == [None, None]
    assert diff_stat(plain, plain) is None
    shutil.rmtree(repository)
    assert diff_stat(here, here) is None, "the repository is gone by now"


def test_programs_in_the_configuration_of_a_repository_are_not_run(repository: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    ran.mkdir()

    def noting(name: str) -> str:
        return f"sh -c 'touch {ran}/{name}; cat'"

    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for hook in ("post-checkout", "post-index-change", "fsmonitor"):
        (hooks / hook).write_text(f"#!/bin/sh\ntouch {ran}/{hook}\n")
        (hooks / hook).chmod(0o755)
    settings = {
        "core.hooksPath": str(hooks),
        "core.fsmonitor": str(hooks / "fsmonitor"),
        "diff.external": noting("diff"),
        "diff.mine.textconv": noting("textconv"),
        "filter.mine.clean": noting("clean"),
        "filter.mine.smudge": noting("smudge"),
        "filter.mine.required": "true",
        "filter.other.process": noting("process"),
    }
    write(repository, ".gitattributes", "two.c filter=mine diff=mine\nmain.c filter=other\n")
    for name, value in settings.items():
        git(repository, "config", name, value)
    # So that git has to read them.
    write(repository, "src/backend/two.c", "int three;\n")
    write(repository, "src/backend/main.c", "int three;\n")
    first, now = commit_source(repository, "first"), tree_source(repository)
    assert now.facts.is_changed
    first.lay_out(tmp_path / "first", server_user())
    now.lay_out(tmp_path / "now", server_user())
    assert "two.c" in (diff_stat(first.facts, now.facts) or "")
    assert list(ran.iterdir()) == []


def test_a_filter_whose_name_cannot_be_passed_is_rejected(repository: Path) -> None:
    with (repository / ".git" / "config").open("ab") as configuration:
        configuration.write(b'[filter "\xff"]\n\tclean = touch ran\n')
    with pytest.raises(BuildError) as caught:
        tree_source(repository)
    assert "not UTF-8" in caught.value.found
