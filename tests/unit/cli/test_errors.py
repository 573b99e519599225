import os
import stat
from pathlib import Path

import pytest

from pgversus import errors
from pgversus.cli.main import error_text, write_crash_report
from pgversus.errors import ExitCode, PgversusError, StudyError, StudyFileError

WHOLE = StudyError("it is so", slug="study-x", where="--set a", found="1", expected="2", to_do="do this")


def test_an_error_shows_four_parts_in_order() -> None:
    assert error_text(WHOLE).splitlines() == [
        "error[study-x]: it is so",
        "  where:    --set a",
        "  found:    1",
        "  expected: 2",
        "  to do:    do this",
    ]


def test_empty_parts_are_omitted() -> None:
    assert error_text(StudyError("it is so", slug="study-x", found="1")).splitlines() == [
        "error[study-x]: it is so",
        "  found:    1",
    ]


def test_continuation_lines_of_a_part_are_aligned_with_its_first() -> None:
    text = error_text(StudyError("it is so", slug="study-x", found="one\ntwo\n"))
    assert text.splitlines()[1:] == ["  found:    one", "            two"]


def test_control_characters_in_an_error_are_escaped() -> None:
    found = StudyError("it is \x1b[1mso", slug="study-x", found="\x1b]0;t\x07\r\n\tx\u202e", expected="\x9b\x7f")
    file = StudyFileError("2 problems", slug="study-file", where="\x1bc.toml", problems=(found,))
    assert error_text(file).splitlines() == [
        "error[study-x]: it is \\x1b[1mso",
        "  found:    \\x1b]0;t\\x07",
        "            \tx\\u202e",
        "  expected: \\x9b\\x7f",
        "",
        "\\x1bc.toml: 2 problems",
    ]


def test_a_traceback_shows_the_same_text_as_the_command_line() -> None:
    assert error_text(WHOLE) == f"error[{WHOLE.slug}]: {WHOLE}"
    of_file = StudyFileError(
        "the study file has 1 problem", slug="x", where="s.toml", problems=(StudyError("p", slug="y"),)
    )
    assert str(of_file) == "error[y]: p\n\ns.toml: the study file has 1 problem"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("StudyError", 2),
        ("DatasetError", 2),
        ("BuildError", 3),
        ("HostError", 3),
        ("ServerError", 3),
        ("WorkloadError", 4),
        ("StoreError", 5),
        ("PgversusError", 70),
    ],
)
def test_the_class_determines_the_exit_code(name: str, code: int) -> None:
    kind = getattr(errors, name)
    assert issubclass(kind, PgversusError)
    assert kind.exit_code is ExitCode(code)


def failing() -> None:
    raise ZeroDivisionError("a bug in pgversus")


def test_a_crash_report_contains_the_traceback_and_the_versions() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        failing()
    path = write_crash_report(caught.value)
    try:
        text = path.read_text()
    finally:
        path.unlink()
    assert "ZeroDivisionError: a bug in pgversus" in text
    assert "in failing" in text
    assert text.startswith("pgversus ")
    assert "Python 3." in text


def test_errors_and_crash_reports_contain_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = "ERROR: it failed\nLINE 1: ALTER ROLE u PASSWORD 'Geheim99'"
    assert "Geheim99" not in error_text(StudyError("psql -d a://u:Geheim99@h", slug="x", found=found, to_do="do it"))
    cause = StudyError("it failed", slug="x", found=found)
    crash = ZeroDivisionError(f"{{'primary_conninfo': 'host=h password=Geheim99'}} {cause}")
    crash.__cause__ = cause
    before = os.umask(0)
    try:
        path = write_crash_report(crash)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "Geheim99" not in path.read_text()
    assert "ALTER ROLE u PASSWORD ..." in path.read_text()
