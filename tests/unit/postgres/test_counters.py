"""The table of questions agrees with the files that it names; what the files answer is tested on real servers."""

import re
from pathlib import Path

import pytest

from pgversus.postgres import counters

FILES = Path(counters.__file__).parent / "sql" / "counters"
MAJORS = range(12, 20)
VERSIONS = re.compile(r"PostgreSQL (?P<first>\d+)(?:(?P<open>\+)| to (?P<last>\d+)| alone), any role\.")


def test_every_file_is_asked_and_every_question_has_its_file() -> None:
    names = [question.name for question in counters._QUESTIONS]
    assert sorted(names) == sorted(path.stem for path in FILES.glob("*.sql"))


@pytest.mark.parametrize("question", counters._QUESTIONS, ids=lambda question: str(question.name))
def test_a_file_says_the_versions_for_which_it_is_asked(question: counters._Question) -> None:
    said = VERSIONS.search((FILES / f"{question.name}.sql").read_text())
    assert said is not None
    last = None if said["open"] else int(said["last"] or said["first"])
    assert (int(said["first"]), last) == (question.first, question.last)


@pytest.mark.parametrize("major", MAJORS)
def test_no_version_is_asked_the_same_twice(major: int) -> None:
    asked = [question.name.partition(".")[0] for question in counters._QUESTIONS if question.suits(major)]
    assert len(set(asked)) == len(asked)
    assert {"database", "background_writer", "checkpoints", "maintenance"} <= set(asked)
