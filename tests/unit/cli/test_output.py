"""A text is printed in pieces as it is made."""

import pytest

from pgversus.cli.output import write_out


def test_pieces_are_printed_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    write_out(iter(["first, ", "second µ"]), "")
    write_out("third", "")
    assert capsys.readouterr().out == "first, second µthird"
