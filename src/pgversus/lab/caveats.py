"""Caveats from what was observed: shown next to the verdict, never corrected silently."""

import re
from collections.abc import Iterator, Sequence

from pgversus.lab.compared_plans import other_rows
from pgversus.lab.load_caveats import ArmMeasurement, load_caveats, measured_of
from pgversus.records.plans import CapturedPlans
from pgversus.records.preparation import RUNNING_SERVER, ArmFacts, Caveat, Difference, Preparation, origin_words
from pgversus.records.trials import Block
from pgversus.report.methodology import phase_word
from pgversus.stats.effects import Samples
from pgversus.study.comparison import Comparison
from pgversus.study.counters import ROWS_WRITTEN
from pgversus.study.design import StopReason
from pgversus.study.servers import NEWEST_TESTED_MAJOR
from pgversus.study.workload import PgbenchWorkload
from pgversus.text.translation import _, both, translate_stored


def plan_caveats(comparison: Comparison, plans: CapturedPlans | None, not_explained: str) -> Iterator[Caveat]:
    """Yield caveats, the gravest first. not_explained: why requested plans are missing; empty if they are not."""
    if not_explained:
        text = _("the plans could not be captured: {words}", words=not_explained)
        yield Caveat(slug="plans-not-captured", text=text)
    if plans is None:
        return
    labels = [arm.label for arm in comparison.arms]
    for arm in comparison.contenders:
        if statements := other_rows(plans, arm.index):
            yield Caveat(
                slug="other-rows",
                arm=arm.index,
                text=_(
                    "{contender} returns different rows from {baseline}, so the two do not do the same work: "
                    "{statements}",
                    contender=arm.label,
                    baseline=labels[0],
                    statements="; ".join(statements),
                ),
            )
    for arm, sampled in zip(comparison.arms, plans.sampled, strict=bool(plans.sampled)):
        if sampled.failure:
            text = _(
                "the plans of {arm} could not be sampled under load: {words}", arm=arm.label, words=sampled.failure
            )
            yield Caveat(slug="plans-not-sampled", arm=arm.index, text=text)
        elif sampled.others:
            yield Caveat(
                slug="other-plans-under-load",
                arm=arm.index,
                text=_(
                    "{others} of {plans} plans of {arm} that were sampled under load differ from the captured plans",
                    others=sampled.others,
                    plans=sampled.told,
                    arm=arm.label,
                ),
            )


_MOST_UNCLOCKED = 0.01
_MOST_SHOWN = 8
_LEAST_SHARE_OF_SERVERS = 0.75


def caveats(
    comparison: Comparison,
    preparation: Preparation,
    samples: Samples,
    stopped: StopReason,
    *,
    cpus: int,
    failure: str | None = None,
    plans: CapturedPlans | None = None,
) -> tuple[Caveat, ...]:
    """Every reason to trust this comparison less, the gravest first.

    cpus: processors available to the host. failure: why the last run could not continue this context.
    plans: as captured; None if they were not.
    """
    facts, differences, blocks = preparation.arms, preparation.differences, samples.blocks
    measured = [measured_of(arm, blocks) for arm in comparison.arms]
    return (
        *_not_gone_on(failure),
        *_mixed_builds(comparison, facts, differences),
        *_untested_majors(comparison, facts),
        *plan_caveats(comparison, plans, preparation.not_explained),
        *_unequal_databases(comparison, differences),
        *_unequal_settings(comparison, differences),
        *_unequal_indexes(comparison, differences),
        *_not_restarted(comparison, facts, writes=preparation.writes),
        *_few_processors(comparison),
        *_late_writes(preparation, blocks, measured),
        *_failures(comparison, blocks),
        *_failed_transactions(measured),
        *_unclocked(comparison, measured),
        *load_caveats(comparison, samples, measured, cpus=cpus),
        *_interrupted(stopped),
    )


def _few_processors(comparison: Comparison) -> Iterator[Caveat]:
    """Yield a caveat if the servers had clearly fewer processors than the host."""
    servers = len(comparison.design.server_processors)
    cpus = servers + len(comparison.design.client_processors)
    if servers and servers < _LEAST_SHARE_OF_SERVERS * cpus:
        yield Caveat(
            slug="few-processors",
            text=_("the servers could use only {servers} of {cpus} processors (--pin)", servers=servers, cpus=cpus),
        )


def _not_gone_on(failure: str | None) -> Iterator[Caveat]:
    if failure is not None:
        yield Caveat(
            slug="not-gone-on",
            text=_("the last run could not continue from the earlier blocks: {failure}", failure=failure),
        )


def _untested_majors(comparison: Comparison, facts: Sequence[ArmFacts]) -> Iterator[Caveat]:
    """Yield a caveat for each arm whose major version is newer than the tests know."""
    for arm, found in zip(comparison.arms, facts, strict=True):
        major = re.match(r"\d+", found.version)
        if major and int(major[0]) > NEWEST_TESTED_MAJOR:
            yield Caveat(
                slug="untested-major",
                arm=arm.index,
                text=_(
                    "{arm} is PostgreSQL {version}, and pgversus is tested up to {newest}: counters and plans may be "
                    "incomplete",
                    arm=arm.label,
                    version=found.version,
                    newest=NEWEST_TESTED_MAJOR,
                ),
            )


def _mixed_builds(
    comparison: Comparison, facts: Sequence[ArmFacts], differences: Sequence[Difference]
) -> Iterator[Caveat]:
    for arm in comparison.contenders:
        parts = _parts(differences, "build", arm.index)
        if parts:
            yield Caveat(
                slug="mixed-builds",
                arm=arm.index,
                text=_(
                    "{baseline} ({baseline_origin}) and {contender} ({contender_origin}) were built differently, "
                    "which alone can change the speed by a factor of up to 1.5: {parts}",
                    baseline=comparison.baseline.label,
                    baseline_origin=origin_words(facts[0].origin),
                    contender=arm.label,
                    contender_origin=origin_words(facts[arm.index].origin),
                    parts=_listed(parts),
                ),
            )


def _unequal_databases(comparison: Comparison, differences: Sequence[Difference]) -> Iterator[Caveat]:
    for arm in comparison.contenders:
        parts = _parts(differences, "database", arm.index)
        if parts:
            yield Caveat(
                slug="unequal-databases",
                arm=arm.index,
                text=_(
                    "the databases of {baseline} and {contender} differ, which changes how fast text is compared and "
                    "sorted: {parts}",
                    baseline=comparison.baseline.label,
                    contender=arm.label,
                    parts=_listed(parts),
                ),
            )


def _unequal_settings(comparison: Comparison, differences: Sequence[Difference]) -> Iterator[Caveat]:
    for arm in comparison.contenders:
        names = [
            _held_against(d, arm.index)
            for d in differences
            if d.kind == "setting" and not d.is_default and d.values[0] != d.values[arm.index]
        ]
        if names:
            yield Caveat(
                slug="unequal-settings",
                arm=arm.index,
                text=_(
                    "{baseline} and {contender} also differ in settings: {settings}",
                    baseline=comparison.baseline.label,
                    contender=arm.label,
                    settings="; ".join(names),
                ),
            )


def _unequal_indexes(comparison: Comparison, differences: Sequence[Difference]) -> Iterator[Caveat]:
    for arm in comparison.contenders:
        names = [d.name for d in differences if d.kind == "index" and d.values[0] != d.values[arm.index]]
        if names:
            yield Caveat(
                slug="unequal-indexes",
                arm=arm.index,
                text=_(
                    "{baseline} and {contender} have different indexes: {indexes}",
                    baseline=comparison.baseline.label,
                    contender=arm.label,
                    indexes=", ".join(names),
                ),
            )


def _not_restarted(comparison: Comparison, facts: Sequence[ArmFacts], *, writes: bool) -> Iterator[Caveat]:
    labels = [arm.label for arm, fact in zip(comparison.arms, facts, strict=True) if fact.origin == RUNNING_SERVER]
    if not labels:
        return
    yield Caveat(
        slug="not-restarted",
        text=_(
            "{arms}: externally managed and not restarted, so the chance effects of a single start are part of the "
            "result",
            arms=both(labels),
        ),
    )
    if writes:
        yield Caveat(
            slug="worn-data",
            text=_(
                "{arms}: the load writes data, and each block started from the state that the previous block left",
                arms=both(labels),
            ),
        )


def _late_writes(
    preparation: Preparation, blocks: Sequence[Block], measured: Sequence[ArmMeasurement]
) -> Iterator[Caveat]:
    """Yield a caveat for a load that seemed read-only in the first run, was measured as such, and then wrote."""
    totals = (one.counters.total(name) for one in measured for name in ROWS_WRITTEN)
    if preparation.writes or all(total == 0 for total in totals):
        return
    writing = [block for block in blocks if any(trial.has_written for trial in block.trials.values())]
    if writing:
        yield Caveat(
            slug="late-writes",
            text=_(
                "the load appeared to be read-only but then wrote data, first in block {first} and in {writing} of "
                "{blocks} blocks: it was measured with the windows of a read-only load, and large data was not "
                "restored between blocks until then",
                first=writing[0].number,
                writing=len(writing),
                blocks=len(blocks),
            ),
        )


def _failures(comparison: Comparison, blocks: Sequence[Block]) -> Iterator[Caveat]:
    found = [failure for block in blocks for failure in block.failures]
    for arm in comparison.arms if found else ():
        failures = [failure for failure in found if failure.arm == arm.index]
        if failures:
            first = failures[0]
            yield Caveat(
                slug="failed-trials",
                arm=arm.index or None,
                text=_(
                    "{failed} of {blocks} trials of {arm} failed and were discarded; the first failed during {phase}: "
                    "{words}",
                    failed=len(failures),
                    blocks=len(blocks),
                    arm=arm.label,
                    phase=phase_word(first.phase),
                    words=first.words,
                ),
            )


def _failed_transactions(measured: Sequence[ArmMeasurement]) -> Iterator[Caveat]:
    for one in measured:
        failed = sum(trial.failed for trial in one.trials)
        if failed:
            yield Caveat(
                slug="failed-transactions",
                arm=one.arm.index or None,
                text=_(
                    "{failed} transactions of {arm} ended in a serialization failure or a deadlock",
                    failed=failed,
                    arm=one.arm.label,
                ),
            )


def _unclocked(comparison: Comparison, measured: Sequence[ArmMeasurement]) -> Iterator[Caveat]:
    """With a rate, latencies that pgbench did not measure cannot be recovered (workload/pgbench_log.py)."""
    workload = comparison.workload
    if not isinstance(workload, PgbenchWorkload) or not workload.is_open_loop:
        return
    for one in measured:
        transactions = sum(trial.transactions for trial in one.trials)
        share = sum(trial.unclocked for trial in one.trials) / max(1, transactions)
        if share > _MOST_UNCLOCKED:
            yield Caveat(
                slug="unclocked-transactions",
                arm=one.arm.index or None,
                text=_(
                    "pgbench did not record the end time of {share} of the transactions of {arm} because their "
                    "replies had already arrived, so their latencies are too low",
                    share=f"{100 * share:.0f} %",
                    arm=one.arm.label,
                ),
            )


def _interrupted(stopped: StopReason) -> Iterator[Caveat]:
    if stopped is StopReason.INTERRUPTED:
        yield Caveat(slug="interrupted", text=_("interrupted: the verdicts are preliminary"))


def _parts(differences: Sequence[Difference], kind: str, arm: int) -> list[str]:
    """Return the differences of this kind between an arm and the baseline."""
    return [_held_against(d, arm) for d in differences if d.kind == kind and d.values[0] != d.values[arm]]


def _held_against(difference: Difference, arm: int) -> str:
    return _(
        "{name} {baseline} vs {contender}",
        name=translate_stored(difference.name),
        baseline=_quoted(difference.values[0]),
        contender=_quoted(difference.values[arm]),
    )


def _listed(parts: Sequence[str]) -> str:
    first = "; ".join(parts[:_MOST_SHOWN])
    rest = len(parts) - _MOST_SHOWN
    return _("{first}; and {rest} more", first=first, rest=rest) if rest > 0 else first


def _quoted(value: str) -> str:
    return f'"{value}"' if value else _("none")
