"""Stored results of the quick profiles: of the present studies, on an idle host, decided where the publication was."""

from pathlib import Path

import pytest

from pgversus.answers.read import read_answer
from pgversus.lab.studies import open_study
from pgversus.stats.confidence import DIFFERENT, Verdict
from pgversus.study.comparison import Arm
from tests.real_results import PUBLISHED, unpacked

DECIDED = {
    "planner-16-vs-17": dict.fromkeys(
        [(workload, "17.8") for workload in ("cte_in", "correlated_in", "group_by_order", "range_contains")],
        Verdict.FASTER,
    ),
    "versions-15-to-18": {
        ("distinct", "18.0"): Verdict.FASTER,
        ("group_by", "18.0"): Verdict.FASTER,
        ("grouping_sets", "18.0"): Verdict.FASTER,
        ("all_four", "18.0"): Verdict.FASTER,
    },
    "vacuum-15-to-17": {("20", "17"): Verdict.FASTER, ("70", "17"): Verdict.FASTER},
    "block-size": {},
    "io-combine-limit": {},
}
"""By level of the context and label of the contender."""


def identity(arm: Arm) -> tuple[object, ...]:
    """Return what an arm is, apart from the paths of its files."""
    files = *arm.dataset.setup_files, *arm.dataset.prepare
    data = arm.dataset.pgbench_scale, arm.dataset.variables, [file.sha256 for file in files]
    return arm.label, arm.settings, data, arm.workload.name


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_stored_result_is_that_of_the_present_profile(name: str, tmp_path: Path) -> None:
    answer = read_answer(unpacked(f"quick/{name}", tmp_path))
    present = open_study(name).study
    measured = {one.context.label: one.comparison for one in answer.answers}
    assert measured.keys() == {context.label for context in present.contexts}
    for context in present.contexts:
        ours, stored = context.comparison, measured[context.label]
        assert [identity(arm) for arm in stored.arms] == [identity(arm) for arm in ours.arms]
        assert (stored.design.metric, stored.design.margin) == (ours.design.metric, ours.design.margin)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_differences_are_found_and_none_between_identical_servers(name: str, tmp_path: Path) -> None:
    answer = read_answer(unpacked(f"quick/{name}", tmp_path))
    found, identical = {}, []
    for one in answer.answers:
        baseline = one.comparison.baseline
        for result in one.analysis.results:
            arm = one.comparison.arms[result.contender]
            found[one.context.levels[0][1], arm.label] = result.verdict
            if (arm.server, arm.settings) == (baseline.server, baseline.settings):
                identical.append(result.verdict)
    assert identical
    assert not DIFFERENT & set(identical)
    assert {place: found[place] for place in DECIDED[name]} == DECIDED[name]
