import io
import os
import re

import pytest
from rich.console import Console

from pgversus.report.caveats import caveat_text
from pgversus.report.sentences import answer_sentences
from pgversus.report.terminal import print_answer
from tests.builders import GOLDEN
from tests.unit.report.cases import CASES

COLOR = re.compile("\x1b\\[[0-9;]*(?:3[0-9]|4[0-9]|9[0-7]|38;|48;)[0-9;]*m")


def printed(case: str, **options: bool | str) -> str:
    file = io.StringIO()
    environ = {"NO_COLOR": "1"} if options.get("no_color_is_set") else {}
    console = Console(
        file=file,
        width=160,
        force_terminal=bool(options.get("is_terminal")),
        color_system="standard" if options.get("is_terminal") else "auto",
        _environ=environ,
    )
    print_answer(CASES[case](), console)
    return file.getvalue()


@pytest.mark.parametrize("case", CASES)
def test_the_answer_matches_its_golden_text(case: str) -> None:
    """Set PGVERSUS_REWRITE_GOLDEN=1 to rewrite the text, then read the diff."""
    golden = GOLDEN / f"{case}.txt"
    text = "".join(f"{line.rstrip()}\n" for line in printed(case).splitlines())
    if os.environ.get("PGVERSUS_REWRITE_GOLDEN") == "1":
        golden.write_text(text)
    assert text == golden.read_text()


def test_every_golden_text_has_a_case() -> None:
    assert {file.stem for file in GOLDEN.glob("*.txt")} == set(CASES)


@pytest.mark.parametrize("case", CASES)
def test_output_to_a_pipe_has_no_escapes(case: str) -> None:
    assert "\x1b" not in printed(case)


def test_output_to_a_terminal_has_colors() -> None:
    assert COLOR.search(printed("faster", is_terminal=True))


@pytest.mark.parametrize("case", CASES)
def test_no_color_is_honored(case: str) -> None:
    assert not COLOR.search(printed(case, is_terminal=True, no_color_is_set=True))


@pytest.mark.parametrize("case", CASES)
def test_sentences_come_first_and_are_not_wrapped(case: str) -> None:
    sentences = answer_sentences(CASES[case]())
    assert printed(case).splitlines()[: len(sentences)] == sentences


@pytest.mark.parametrize("case", CASES)
def test_every_arm_and_every_caveat_is_shown(case: str) -> None:
    answer, text = CASES[case](), printed(case)
    assert all(arm.label in text for arm in answer.comparison.arms)
    assert all(caveat_text(caveat) in text and f"({caveat.slug})" in text for caveat in answer.caveats)
    assert answer.results in text
