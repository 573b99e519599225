"""Which study is meant, with which seed, and where its results go."""

from pathlib import Path

import pytest

from pgversus.lab.studies import open_study
from pgversus.store.results import Results
from pgversus.study.study import StudyFact

TEXT = """
title = "Two servers"
[factors]
server = ["16.12", "17.8"]
[workload]
builtin = "select-only"
"""


@pytest.mark.parametrize(
    ("in_file", "asked", "earlier", "expected"),
    [
        ("", 9, None, 9),
        ("[design]\nseed = 5", None, None, 5),
        # The flag says what is wanted now, and a resumed run then refuses what changed.
        ("[design]\nseed = 5", 9, None, 9),
        ("[design]\nseed = 5", 9, 4, 9),
        ("[design]\nseed = 5", None, 4, 5),
        ("", 9, 4, 9),
        ("", None, 4, 4),
    ],
)
def test_the_seed_is_that_of_the_flag_else_of_the_file_else_of_earlier_results(
    tmp_path: Path, in_file: str, asked: int | None, earlier: int | None, expected: int
) -> None:
    file, folder = tmp_path / "s.toml", tmp_path / "r"
    file.write_text(TEXT + in_file)
    if earlier is not None:
        fact = StudyFact(name="s", title="t", question="q", seed=earlier, verdicts=0, contexts=0)
        Results.begin(folder, fact, []).close()
    study, _ = open_study(str(file), seed=asked, results=folder)
    assert study.seed == expected
    assert {context.comparison.design.seed for context in study.contexts} == {expected}
