"""A text is printed in pieces as it is made, and nothing of it is obeyed."""

import ast
import io
import re
from pathlib import Path

import pytest

import pgversus
from pgversus.cli.output import rendered, write_error, write_out


def test_pieces_are_printed_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    write_out(iter(["first, ", "second µ"]), "")
    write_out("third", "")
    assert capsys.readouterr().out == "first, second µthird"


class Terminal(io.StringIO):
    """What is written to it is what a terminal would obey."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_data_are_shown_and_not_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    write_out(["a,\x1b[2Jb\r\n", "c\u202e\n"], "")
    write_out(rendered(lambda console, _: console.print("x\x1b", style="bold red")), "")
    assert terminal.getvalue().startswith("a,\\x1b[2Jb\nc\\u202e\n")
    colours, _, rest = terminal.getvalue().partition("x\\x1b\x1b")
    assert colours.endswith("\x1b[1;31m")
    assert rest.startswith("[0m")


def test_a_program_that_reads_a_pipe_gets_data_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    write_out("a,\x1b[2Jb\r\n", "")
    assert capsys.readouterr().out == "a,\x1b[2Jb\r\n"


def test_nothing_on_standard_error_is_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    write_error("no \x1b]0;mine\x07\u200f")
    assert capsys.readouterr().err == "no \\x1b]0;mine\\x07\\u200f\n"


def test_one_module_writes_to_the_streams() -> None:
    """Each text on its way to a terminal passes it, or a console that shows what it would obey."""
    package = Path(pgversus.__file__).parent
    written = []
    for file in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                is_written = re.fullmatch(r"print|click\.s?echo|click\.secho|sys\.std(out|err)\.write(lines)?", called)
                if is_written or called in ("Console", "rich.print"):
                    written.append(str(file.relative_to(package)))
    # A process of its own, whose words become a part of an error.
    assert set(written) == {"cli/output.py", "builds/zonky_client.py"}
