"""Caveats from the properties and the trials of the arms."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from pgversus.answers.answer import Caveat, Severity
from pgversus.answers.caveats import caveats
from pgversus.records.preparation import ArmFacts, Difference, Preparation
from pgversus.records.trials import Block, FailedTrial, Phase
from pgversus.report.caveats import caveat_text
from pgversus.report.sentences import contender_sentence
from pgversus.stats.effects import Samples
from pgversus.study.design import Design, StopReason
from pgversus.study.workload import PgbenchWorkload, Script
from tests.builders import answer, comparison, rate_block, rate_blocks

FACTS = ArmFacts(version="17.8", origin="zonky", compiler="gcc", flags="", sha256=None)


def block(number: int, contender: Mapping[str, float]) -> Block:
    made = rate_block(number, 1000.0, 1000.0, transactions=1000)
    return made._replace(trials={**made.trials, 1: made.trials[1]._replace(counters=contender)})


def texts(blocks: list[Block], *, writes: bool = False) -> list[str]:
    known = Preparation(design=Design(), arms=(FACTS, FACTS), differences=(), writes=writes, connect_allowance_s=0)
    found = caveats(comparison(), known, Samples(blocks), StopReason.DECIDED, cpus=2)
    return [caveat_text(caveat) for caveat in found if caveat.slug == "late-writes"]


@pytest.mark.parametrize("name", ["tuples_inserted", "tuples_updated", "tuples_deleted"])
def test_late_writes_are_found_in_the_trials(name: str) -> None:
    blocks = [block(1, {name: 0.0}), block(2, {name: 3.0}), block(3, {name: 1.0})]
    (text,) = texts(blocks)
    assert "first in block 2 and in 2 of 3" in text
    assert texts(blocks, writes=True) == []


def test_rows_that_autovacuum_may_have_written_are_not_late_writes() -> None:
    assert texts([block(1, {"tuples_updated": 3.0, "autoanalyze_runs": 1.0}), block(2, {})]) == []


def test_blocks_that_could_not_be_resumed_have_a_caveat_with_the_reason() -> None:
    known = Preparation(design=Design(), arms=(FACTS, FACTS), differences=(), writes=False, connect_allowance_s=0)
    blocks = [rate_block(1, 1000.0, 1000.0)]
    (first, *_) = caveats(comparison(), known, Samples(blocks), StopReason.DECIDED, cpus=2, failure="other rows")
    assert first.slug == "not-resumed"
    assert "other rows" in caveat_text(first)


@pytest.mark.parametrize(("version", "expected"), [("18.0", []), ("19beta1", [1]), ("devel", [])])
def test_a_major_version_newer_than_the_tested_ones_has_a_caveat(version: str, expected: list[int]) -> None:
    arms = (FACTS, replace(FACTS, version=version))
    known = Preparation(design=Design(), arms=arms, differences=(), writes=False, connect_allowance_s=0)
    found = caveats(comparison(), known, Samples(), StopReason.DECIDED, cpus=2)
    assert [caveat.arm for caveat in found if caveat.slug == "untested-major"] == expected


def test_a_caveat_about_the_baseline_concerns_every_verdict() -> None:
    arms = (replace(FACTS, version="19.0"), FACTS)
    known = Preparation(design=Design(), arms=arms, differences=(), writes=False, connect_allowance_s=0)
    (caveat,) = caveats(comparison(), known, Samples(), StopReason.DECIDED, cpus=2)
    assert answer(rate_blocks([100.0] * 4, [200.0] * 4), caveats=(caveat,)).caveats_of(1) == (caveat,)


def test_the_gravest_caveats_come_first() -> None:
    """The summary on a terminal shows the first three only."""
    arms = (replace(FACTS, version="19.0"), replace(FACTS, version="19.0"))
    mixed = Difference(kind="build", name="compiler", values=("one", "other"), is_default=False)
    known = Preparation(design=Design(), arms=arms, differences=(mixed,), writes=True, connect_allowance_s=0)
    failed = FailedTrial(arm=1, phase=Phase.MEASURE, message="out of memory")
    blocks = [rate_block(number, 100.0, 200.0)._replace(failures=(failed,)) for number in range(1, 6)]
    found = caveats(comparison(), known, Samples(blocks), StopReason.DECIDED, cpus=2)
    assert [caveat.severity for caveat in found] == sorted(
        (caveat.severity for caveat in found), key=list(Severity).index
    )
    assert [caveat.slug for caveat in found][:2] == ["mixed-builds", "failed-trials"]
    assert {"untested-major", "short-writing-windows"} <= {caveat.slug for caveat in found}


@pytest.mark.parametrize(
    ("tps", "window_s", "writes", "shown"),
    [
        (200.0, 1.0, True, "1 s"),
        (50.0, 1.0, True, "1 s"),
        (200.0, 0.05, True, "50 ms"),
        (105.0, 1.0, True, ""),
        (200.0, 5.0, True, ""),
        (200.0, 1.0, False, ""),
    ],
)
def test_a_large_difference_in_short_windows_that_write_has_a_caveat(
    tps: float, window_s: float, *, writes: bool, shown: str
) -> None:
    known = Preparation(
        design=Design(window_s=window_s), arms=(FACTS, FACTS), differences=(), writes=writes, connect_allowance_s=0
    )
    samples = Samples(rate_blocks([100.0] * 4, [tps] * 4))
    found = caveats(comparison(), known, samples, StopReason.DECIDED, cpus=2)
    reported = [caveat_text(caveat) for caveat in found if caveat.slug == "short-writing-windows"]
    text = (
        f"in windows of {shown}, a load that writes shows only part of a large difference between 16.12 and 17.8 "
        "(--window 5s shows more of it)"
    )
    assert reported == ([text] if shown else [])


def test_a_load_that_is_rolled_back_needs_no_long_windows() -> None:
    known = Preparation(design=Design(), arms=(FACTS, FACTS), differences=(), writes=True, connect_allowance_s=0)
    samples = Samples(rate_blocks([100.0] * 4, [200.0] * 4))
    whole = comparison()
    load = PgbenchWorkload(scripts=(Script(name="update.sql", text="BEGIN;\nUPDATE t SET a = 1;\nROLLBACK;\n"),))
    rolled_back = replace(whole, arms=tuple(replace(arm, workload=load) for arm in whole.arms))
    slugs = {one.slug for one in caveats(rolled_back, known, samples, StopReason.DECIDED, cpus=2)}
    assert "short-writing-windows" not in slugs


def test_a_percentile_is_reported_as_missing_only_if_percentiles_are_shown() -> None:
    known = Preparation(design=Design(), arms=(FACTS, FACTS), differences=(), writes=False, connect_allowance_s=0)
    samples = Samples([rate_block(number, 100.0, 100.0, transactions=3) for number in range(1, 5)])
    for shown in (True, False):
        found = caveats(comparison(), known, samples, StopReason.DECIDED, cpus=2, shows_percentiles=shown)
        assert ("few-for-percentile" in {one.slug for one in found}) is shown


def reported(*differences: Difference) -> tuple[Caveat, ...]:
    known = Preparation(
        design=Design(), arms=(FACTS, FACTS), differences=differences, writes=False, connect_allowance_s=0
    )
    return caveats(comparison(), known, Samples(), StopReason.DECIDED, cpus=2)


@pytest.mark.parametrize(
    ("kind", "name", "slug"),
    [
        ("build", "compiler", "mixed-builds"),
        ("build", "--with-llvm", "mixed-builds"),
        ("build", "JIT available", "mixed-builds"),
        ("database", "collation", "unequal-databases"),
    ],
)
def test_the_sentence_on_different_builds_or_sort_orders_starts_with_check(kind: str, name: str, slug: str) -> None:
    (caveat,) = reported(Difference(kind=kind, name=name, values=("one", ""), is_default=False))
    assert (caveat.slug, caveat.arm) == (slug, 1)
    assert caveat_text(caveat).endswith(f'{name} "one" vs none')
    measured = answer(rate_blocks([100.0] * 6, [200.0] * 6), caveats=(caveat,))
    assert contender_sentence(measured, measured.analysis.results[0], as_factors=False).startswith("CHECK")


def test_long_lists_of_build_differences_are_shortened_and_counted() -> None:
    many = [Difference(kind="build", name=f"--with-{n}", values=("yes", ""), is_default=False) for n in range(10)]
    (caveat,) = reported(*many)
    assert caveat_text(caveat).endswith('--with-7 "yes" vs none; and 2 more')


@pytest.mark.parametrize(
    ("client", "servers", "words"),
    [
        ((0,), (1,), ["the servers could use only 1 of 2 processors (--pin)"]),
        ((0,), (1, 2, 3), []),
        ((0,), (), []),
        ((), (), []),
    ],
)
def test_servers_with_few_of_the_processors_have_a_caveat(
    client: tuple[int, ...], servers: tuple[int, ...], words: list[str]
) -> None:
    known = Preparation(design=Design(), arms=(FACTS, FACTS), differences=(), writes=False, connect_allowance_s=0)
    requested = comparison(design=Design(client_processors=client, server_processors=servers))
    # Regardless of further processors of the host.
    found = caveats(requested, known, Samples(), StopReason.DECIDED, cpus=64)
    assert [caveat_text(caveat) for caveat in found if caveat.slug == "few-processors"] == words
