"""Stored results of the quick profiles: of the present studies, on an idle host, decided where the publication was."""

import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from pgversus.answers.plans import changed_plans, restoration_of
from pgversus.answers.read import read_answer
from pgversus.lab.studies import open_study
from pgversus.stats.confidence import DIFFERENT, Verdict
from pgversus.store.folder import FILE_NAME
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
    # 15.10 was published as slower than 16.6, measured on another day.
    "vacuum-15-to-17": dict.fromkeys(
        [(dead, version) for dead in ("20", "70") for version in ("15.10", "17")], Verdict.FASTER
    ),
    "block-size": {
        ("seqscan", "17+blocksize=4"): Verdict.SLOWER,
        ("indexscan", "17+blocksize=4"): Verdict.SLOWER,
        ("seqscan", "17+blocksize=16"): Verdict.FASTER,
        ("indexscan", "17+blocksize=16"): Verdict.FASTER,
        ("tpcb", "17+blocksize=4"): Verdict.EQUIVALENT,
        ("tpcb", "17+blocksize=16"): Verdict.EQUIVALENT,
    },
    "io-combine-limit": {
        (workload, "io_combine_limit=1"): Verdict.EQUIVALENT for workload in ("seqscan", "indexscan", "tpcb")
    },
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


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_host_was_quiet(name: str, tmp_path: Path) -> None:
    answer = read_answer(unpacked(f"quick/{name}", tmp_path))
    caveats = [caveat for one in answer.answers for caveat in one.caveats]
    found = {caveat.slug for caveat in caveats}
    assert not found & {"host-stolen", "disk-disturbed", "cache-not-cold", "memory-pressure"}
    # The limit of the caveat is 10 %.
    assert all(caveat.values["share"] < 0.12 for caveat in caveats if caveat.slug == "host-disturbed")


def test_a_larger_limit_combines_reads_of_a_scan(tmp_path: Path) -> None:
    """The setting has acted: the scan has found nothing in memory, and has requested several blocks at once."""
    answer = read_answer(unpacked("quick/io-combine-limit", tmp_path))
    (scan,) = (one for one in answer.answers if one.context.label == "workload=seqscan")
    (single,) = (
        one for one in scan.analysis.results if scan.comparison.arms[one.contender].label == "io_combine_limit=1"
    )
    calls = single.counters["server_read_calls"]
    assert calls.low is not None
    assert calls.low > 4
    assert single.counters["disk_read_bytes"].value == pytest.approx(1, abs=0.1)


def duration_s(results: Path) -> float:
    """Return the time from the first to the last fact of a run, without downloads and builds of servers."""
    with closing(sqlite3.connect(results / FILE_NAME)) as database:
        (ends,) = database.execute("SELECT min(recorded_at), max(recorded_at) FROM fact").fetchall()
    begin, end = map(datetime.fromisoformat, ends)
    return float((end - begin).total_seconds())


def test_all_profiles_take_less_than_half_an_hour(tmp_path: Path) -> None:
    durations = {name: duration_s(unpacked(f"quick/{name}", tmp_path / name)) for name in PUBLISHED}
    assert sum(durations.values()) < 1800, durations
    assert durations["vacuum-15-to-17"] < 600


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_difference_has_an_attribution_or_a_reason(name: str, tmp_path: Path) -> None:
    shares = {}
    for one in read_answer(unpacked(f"quick/{name}", tmp_path)).answers:
        plans = one.plans()
        for result in one.analysis.results:
            arm = one.comparison.arms[result.contender]
            compared = () if plans is None else plans.of(arm.label)
            if result.verdict not in DIFFERENT or not changed_plans(compared):
                continue
            attributed = one.attributions.get(result.contender)
            if attributed is None:
                # The report says that no setting restores the plan.
                assert restoration_of(compared, arm.workload) is None
            else:
                assert attributed.found is not None, attributed.failure
                shares[one.context.levels[0][1]] = attributed.found.share
    if name == "planner-16-vs-17":
        assert shares.keys() == {"cte_in", "correlated_in", "group_by_order"}
        for share in shares.values():
            assert share is not None
            assert share.value >= 0.9
            # Otherwise the report says how small the share may be.
            assert share.high >= 0.9
