"""Text is printed in pieces as it is produced, with control characters escaped on a terminal."""

import ast
import io
import re
from pathlib import Path

import pytest

import pgversus
from pgversus.cli.output import read_text, rendered, write_error, write_out
from pgversus.errors import StudyError


def test_pieces_are_printed_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    write_out(iter(["first, ", "second µ"]), "")
    write_out("third", "")
    assert capsys.readouterr().out == "first, second µthird"


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def test_control_characters_in_data_are_escaped_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    write_out(["a,\x1b[2Jb\r\n", "c\u202e\n"], "")
    write_out(rendered(lambda console, _: console.print("x\x1b", style="bold red")), "")
    assert terminal.getvalue().startswith("a,\\x1b[2Jb\nc\\u202e\n")
    colors, _, rest = terminal.getvalue().partition("x\\x1b\x1b")
    assert colors.endswith("\x1b[1;31m")
    assert rest.startswith("[0m")


def test_data_in_a_pipe_is_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    write_out("a,\x1b[2Jb\r\n", "")
    assert capsys.readouterr().out == "a,\x1b[2Jb\r\n"


def test_control_characters_on_standard_error_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    write_error("no \x1b]0;mine\x07\u200f")
    assert capsys.readouterr().err == "no \\x1b]0;mine\\x07\\u200f\n"


def test_a_file_whose_name_is_not_utf8_is_refused_before_anything_is_stored(tmp_path: Path) -> None:
    file = tmp_path / "a\udcff.sql"
    file.write_text("SELECT 1;")
    with pytest.raises(StudyError) as caught:
        read_text(str(file), "-f")
    assert (caught.value.slug, caught.value.found) == ("study-no-file", "a name that is not UTF-8")


def test_the_mark_at_the_beginning_of_a_script_is_not_a_part_of_it(tmp_path: Path) -> None:
    file = tmp_path / "windows.sql"
    file.write_bytes(b"\xef\xbb\xbfSELECT 1;\n")
    assert read_text(str(file), "-f") == "SELECT 1;\n"


def test_only_one_module_writes_to_the_streams() -> None:
    """Every text for a terminal goes through it, or through a console that escapes control characters."""
    package = Path(pgversus.__file__).parent
    written = []
    for file in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                is_written = re.fullmatch(r"print|click\.s?echo|click\.secho|sys\.std(out|err)\.write(lines)?", called)
                if is_written or called in ("Console", "rich.print"):
                    written.append(str(file.relative_to(package)))
    # A separate process, whose output becomes part of an error.
    assert set(written) == {"cli/output.py", "builds/zonky_client.py"}
