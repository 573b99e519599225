"""A study file that requests more than managed servers and its own files needs the user's consent."""

import shutil
from functools import partial
from pathlib import Path

import pytest

import pgversus
from pgversus.errors import ExitCode, StudyError
from pgversus.lab.consent import Ask, has_consent, opened_with_consent
from pgversus.lab.studies import OpenedStudy, bundled_names, library, open_study

ROOT = Path(__file__).parents[3]
PLAIN = """
title = "Two servers"
[factors]
server = ["16.12", "17.8"]
[workload]
script = "query.sql"
[dataset]
setup = ["fill.sql"]
"""
DUMP = """
title = "A dump"
[factors]
server = ["16.12", "17.8"]
[workload]
command = "pg_dump -f x.sql"
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """File that stores the answers."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "pgversus" / "trusted-studies"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folder of a study that is confined to it."""
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "query.sql").write_text("SELECT 1;\n")
    (folder / "fill.sql").write_text("CREATE TABLE t (id int);\n")
    (folder / "study.toml").write_text(PLAIN)
    return folder


class Answers:
    """A user at a terminal who gives these answers and is not asked more often than that."""

    def __init__(self, *answers: bool) -> None:
        self._answers = list(answers)
        self.shown: list[list[str]] = []

    def __call__(self, opened: OpenedStudy) -> bool:
        self.shown.append(opened.access.lines)
        return self._answers.pop(0)


def opened(study: Path, ask: Ask | None = None, *, trust: bool = False) -> OpenedStudy:
    return opened_with_consent(partial(open_study, str(study)), trust=trust, ask=ask)


def refused(study: Path, ask: Ask | None = None) -> StudyError:
    with pytest.raises(StudyError) as caught:
        opened(study, ask)
    assert (caught.value.slug, caught.value.exit_code) == ("study-not-trusted", ExitCode.USAGE)
    return caught.value


def test_a_study_confined_to_its_folder_needs_no_consent(folder: Path, state: Path) -> None:
    assert opened(folder).access.is_none
    assert not state.exists()


@pytest.mark.parametrize("name", bundled_names())
def test_a_bundled_study_needs_no_consent_and_its_copy_only_for_programs(name: str, tmp_path: Path) -> None:
    assert opened(Path(name)).access.is_none
    copy = shutil.copytree(library() / name, tmp_path / "mine")
    if name == "maintenance-15-to-18":
        assert [line.partition(":")[0] for line in refused(copy).found.splitlines()] == ["runs programs"]
    else:
        assert opened(copy).access.is_none


def test_the_example_needs_no_consent() -> None:
    assert opened(ROOT / "examples").access.is_none


def test_a_study_that_runs_a_program_is_refused_unless_it_is_trusted(folder: Path, state: Path) -> None:
    (folder / "study.toml").write_text(DUMP)
    error = refused(folder)
    assert error.found == "runs programs: pg_dump -f x.sql"
    assert "--trust" in error.to_do
    assert opened(folder, trust=True).study.contexts
    assert not state.exists(), "a flag holds for one run"
    refused(folder)


def test_python_refuses_what_the_command_line_refuses(folder: Path) -> None:
    (folder / "study.toml").write_text(DUMP)
    with pytest.raises(StudyError) as caught:
        pgversus.run(folder / "study.toml", results=folder / "r")
    assert (caught.value.slug, caught.value.found) == ("study-not-trusted", "runs programs: pg_dump -f x.sql")
    assert not (folder / "r").exists()


def test_a_yes_is_stored_for_the_same_files_and_a_no_is_not(folder: Path, state: Path) -> None:
    (folder / "fill.sql").write_text("\\! date\n")
    no = Answers(False)
    refused(folder, no)
    assert no.shown == [["runs programs: fill.sql: \\! date"]]
    assert not state.exists()
    assert opened(folder, Answers(True)).study.contexts
    assert (state.stat().st_mode & 0o777, state.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert opened(folder).study.contexts
    for changed in ("study.toml", "query.sql", "fill.sql"):
        before = (folder / changed).read_text()
        (folder / changed).write_text(f"{before}\n")
        refused(folder)
        (folder / changed).write_text(before)
    assert opened(folder).study.contexts


def test_consent_to_one_profile_does_not_cover_one_that_requests_more(folder: Path) -> None:
    (folder / "study.toml").write_text(
        f"{DUMP}[profiles.quick.design]\nbudget = '1h'\n[profiles.full.workload]\ncommand = 'rm -rf data'\n"
    )
    assert opened(folder, Answers(True)).study.contexts
    requested = partial(open_study, str(folder), profile="full")
    with pytest.raises(StudyError) as caught:
        opened_with_consent(requested, trust=False, ask=None)
    assert caught.value.found == "runs programs: rm -rf data"


def test_consent_to_a_server_in_one_directory_does_not_cover_another(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "study.toml").write_text(PLAIN.replace("16.12", "./bin"))
    monkeypatch.chdir(folder)
    assert opened(folder, Answers(True)).study.contexts
    assert opened(folder).study.contexts
    monkeypatch.chdir(tmp_path)
    refused(folder)


def test_answers_that_another_user_could_have_written_are_ignored(folder: Path, state: Path) -> None:
    (folder / "study.toml").write_text(DUMP)
    state.parent.mkdir(parents=True)
    state.write_text(f"{open_study(str(folder)).digest}\n")
    state.chmod(0o600)
    assert has_consent(open_study(str(folder)))
    for mode in (0o620, 0o602):
        state.chmod(mode)
        assert not has_consent(open_study(str(folder)))


def test_an_answer_that_cannot_be_stored_still_counts(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "study.toml").write_text(DUMP)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert opened(folder, Answers(True)).study.contexts
    assert opened(folder, Answers(True)).study.contexts


def test_answers_are_not_written_through_a_link(folder: Path, tmp_path: Path, state: Path) -> None:
    (folder / "study.toml").write_text(DUMP)
    state.parent.mkdir(parents=True)
    state.symlink_to(tmp_path / "elsewhere")
    opened(folder, Answers(True))
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("is_linked", [True, False])
def test_a_file_outside_of_the_folder_is_not_read_without_consent(
    folder: Path, tmp_path: Path, *, is_linked: bool
) -> None:
    outside = tmp_path / "outside.sql"
    # Reading it would be reported as a problem of the study file.
    outside.write_bytes(b"\xff")
    if is_linked:
        (folder / "query.sql").unlink()
        (folder / "query.sql").symlink_to(outside)
    else:
        (folder / "study.toml").write_text(PLAIN.replace("query.sql", "../outside.sql"))
    name = "query.sql" if is_linked else "../outside.sql"
    assert refused(folder).found == f"reads: {name}"
    with pytest.raises(StudyError) as caught:
        opened(folder, trust=True)
    assert caught.value.slug == "study-file"


@pytest.mark.parametrize("key", ['setup = ["/dev/zero"]', 'setup = ["/etc/shadow"]', 'setup = ["../other.sql"]'])
def test_setup_files_may_be_anywhere_and_are_named(folder: Path, key: str) -> None:
    (folder / "study.toml").write_text(PLAIN.replace('setup = ["fill.sql"]', key))
    assert refused(folder).found == f"reads: {key.split(chr(34))[1]}"


def test_published_figures_outside_of_the_folder_are_not_read_without_consent(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "figures.csv").write_text("workload,level,tps\nquery.sql,17.8,1000\n")
    (folder / "study.toml").write_text(f'published = "../figures.csv"\n{PLAIN}')
    assert refused(folder).found == "reads: ../figures.csv"
    assert open_study(str(folder)).study.published is None
    assert opened(folder, trust=True).study.published


def test_files_outside_of_the_folder_are_judged_once_they_may_be_read(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.sql"
    (folder / "study.toml").write_text(PLAIN.replace("query.sql", "../outside.sql"))
    outside.write_text("SELECT 1;\n")
    once = Answers(True)
    assert opened(folder, once).study.contexts
    assert once.shown == [["reads: ../outside.sql"]]
    assert opened(folder).study.contexts
    outside.write_text("SELECT 1;\n\\shell date\n")
    assert refused(folder).found == "runs programs: ../outside.sql: \\shell date\nreads: ../outside.sql"
    again = Answers(True)
    assert opened(folder, again).study.contexts
    assert opened(folder).study.contexts
    # The same requests in a different text need consent again.
    outside.write_text("SELECT 2;\n\\shell date\n")
    refused(folder)


def test_a_folder_behind_a_link_contains_its_files(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    assert opened(tmp_path / "link").access.is_none


@pytest.mark.parametrize("name", ["a\\u0000b", "loop"])
def test_a_missing_file_is_a_problem_of_the_study_file(folder: Path, name: str) -> None:
    (folder / "loop").symlink_to("loop")
    (folder / "study.toml").write_text(PLAIN.replace("query.sql", name))
    with pytest.raises(StudyError) as caught:
        opened(folder)
    assert caught.value.slug == "study-file"
