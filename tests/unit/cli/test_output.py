"""A file is written whole or not at all, however its content is made."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pgversus.cli.output import write_file, write_out
from pgversus.errors import HostError


def pieces(ends_with: BaseException | None = None) -> Iterator[str]:
    yield "first, "
    if ends_with is not None:
        raise ends_with
    yield "second µ"


def test_pieces_are_written_one_after_the_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_file(tmp_path / "f", pieces())
    assert (tmp_path / "f").read_text(encoding="utf-8") == "first, second µ"
    write_out(pieces(), "")
    write_out("third", "")
    assert capsys.readouterr().out == "first, second µthird"


@pytest.mark.parametrize("reason", [KeyboardInterrupt(), OSError("no space left")])
def test_a_file_that_was_there_is_not_half_written_over(tmp_path: Path, reason: BaseException) -> None:
    write_file(tmp_path / "f", "before")
    with pytest.raises((KeyboardInterrupt, HostError)):
        write_file(tmp_path / "f", pieces(reason))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"f": "before"}
