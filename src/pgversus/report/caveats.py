"""The sentences of caveats (answers/caveats.py): one for each slug, with the observed values in its places."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pgversus.answers.answer import NOT_RESTORED, OTHER_ORDER, OTHER_ROWS, Caveat
from pgversus.records.plans import StatementName, Uncertainty
from pgversus.records.preparation import origin_text
from pgversus.report.methodology import phase_word
from pgversus.report.plans import statement_text, uncertain_text
from pgversus.study.metrics import percentile_name
from pgversus.text.translation import N_, _, both, translate_stored
from pgversus.text.units import latency, significant

_MOST_SHOWN = 8
_LONGEST_JOINT = 60
# Maximum number of characters of the values of all arms in a sentence that several arms share.


def caveat_text(caveat: Caveat) -> str:
    """Return a caveat as one sentence without a full stop: what was observed, and on which arms."""
    return _(_sentence(caveat), **_shown(caveat))


def joint_text(caveats: Mapping[str, Caveat]) -> str:
    """Return caveats with the same slug as one sentence, with their values in turn: `17.6 / 18.1 used 17 % / 14 %`.

    If the values are long, it is the first caveat with the arms of the others. Caveats in different words, such as
    faster and slower, are not joined. caveats: by the label of their arm.
    """
    alike: dict[str, dict[str, Caveat]] = {}
    for label, caveat in caveats.items():
        alike.setdefault(_sentence(caveat), {})[label] = caveat
    return "; ".join(map(_joint, alike.values()))


def _joint(caveats: Mapping[str, Caveat]) -> str:
    """Return caveats in the same words as one sentence."""
    first, *others = caveats.values()
    shown = [_shown(one) for one in (first, *others)]
    values = {name: [one.get(name, "") for one in shown] for name in shown[0]}
    joint = {name: texts[0] if len(set(texts)) == 1 else " / ".join(texts) for name, texts in values.items()}
    is_short = all(len(joint[name]) <= _LONGEST_JOINT for name, texts in values.items() if len(set(texts)) > 1)
    if is_short:
        return _(_sentence(first), **joint)
    return _("{caveat} (similar for {arms})", caveat=caveat_text(first), arms=both(list(caveats)[1:]))


def _sentence(caveat: Caveat) -> str:
    slug, values = caveat.slug, caveat.values
    return _STEADY[values["is_faster"]] if slug == "not-steady" else SENTENCES[slug]


def _shown(caveat: Caveat) -> dict[str, str]:
    return {name: _FORMATS.get(name, str)(value) for name, value in caveat.values.items()}


SENTENCES = {
    "plans-not-captured": N_("the plans could not be captured: {failure}"),
    "settings-not-checked": N_(
        "it could not be checked whether the requested settings were in effect during every statement: {failure}"
    ),
    OTHER_ROWS: N_(
        "the rows of {contender} differ from those of {baseline}, so the two may not do the same work: {statements}"
    ),
    OTHER_ORDER: N_(
        "{contender} returns the rows in a different order from {baseline}, although the statement orders them "
        "completely: {statements}"
    ),
    "rows-not-comparable": N_("the rows of {contender} and {baseline} cannot be compared: {uncertain}"),
    "plans-not-sampled": N_("the plans of {arm} could not be sampled under load: {failure}"),
    "other-plans-under-load": N_(
        "plans of {arm} sampled under load that differ from the captured plans: {others} of {plans}"
    ),
    "few-processors": N_("the servers could use only {servers} of {cpus} processors (--pin)"),
    "not-resumed": N_("the last run could not resume from the earlier blocks: {failure}"),
    "hosts-disagree": N_(
        "the hosts give conflicting results for {contender}, so no verdict applies to all of them; {metric} relative "
        "to {baseline}: {hosts}"
    ),
    "many-hosts": N_("{contender} was measured on several hosts; {metric} relative to {baseline}: {hosts}"),
    "untested-major": N_(
        "{arm} is PostgreSQL {version}, but pgversus has been tested only up to {newest}: counters and plans may be "
        "incomplete"
    ),
    "mixed-builds": N_(
        "{baseline} ({baseline_origin}) and {contender} ({contender_origin}) were built differently, which alone can "
        "change the speed by a factor of up to 1.5: {parts}"
    ),
    NOT_RESTORED: N_("{arm} rejected parts of the dump: {problems}"),
    "settings-not-restored": N_(
        "{arm} was loaded without some of the settings in the dump, because it does not have them, rejects them, or "
        "sets them itself: {problems}"
    ),
    "other-locale": N_(
        "the dumped database has the locale {locale}, which is not used here: {arm} compares and sorts text as in C"
    ),
    "unequal-databases": N_(
        "the databases of {baseline} and {contender} differ in encoding or collation, which changes the speed of "
        "comparing and sorting text: {parts}"
    ),
    "unequal-settings": N_("{baseline} and {contender} also differ in settings: {settings}"),
    "unequal-tables": N_("{baseline} and {contender} hold different rows after the restore: {tables}"),
    "unequal-indexes": N_("{baseline} and {contender} have different indexes: {indexes}"),
    "not-restarted": N_(
        "{arms}: external servers are not restarted, so the chance effects of a single start, often 1 or 2 %, are part "
        "of the result"
    ),
    "worn-data": N_("{arms}: the load writes data, and each block started from the state that the previous block left"),
    "late-writes": N_(
        "the load appeared to be read-only but then wrote data, first in block {first} and in {writing} of {blocks} "
        "blocks: it was measured with the windows of a read-only load, and large data was not restored between blocks "
        "until then"
    ),
    "failed-trials": N_(
        "failed trials of {arm} that were dropped: {failed} of {blocks}; the first failed during {phase}: {failure}"
    ),
    "short-writing-windows": N_(
        "in windows of {window_s}, a load that writes shows only part of a large difference between {baseline} and "
        "{contender} (--window 5s shows more of it)"
    ),
    "latency-without-failed": N_(
        "{share} of the transactions of {arm} failed, perhaps the slowest ones; their latencies are not included"
    ),
    "failed-transactions": N_("transactions of {arm} that ended in a serialization failure or a deadlock: {failed}"),
    "unclocked-transactions": N_(
        "pgbench did not record the end time of {share} of the transactions of {arm} because their replies had already "
        "arrived, so their latencies are too low"
    ),
    "rate-not-reached": N_(
        "{arm} reached only {reached} of {rate} transactions per second, so its latencies may be those of a queue "
        "that grows throughout each window"
    ),
    "client-bound": N_(
        "pgbench may have been the bottleneck on {arm}: it used {share} of the CPU time available to its threads, so "
        "the server may be faster than measured (use more pgbench threads to find out)"
    ),
    "host-disturbed": N_("while {arm} was measured, user-mode code of other programs used {share} of the CPU time"),
    "disturbed-windows": N_(
        "windows of {arm} that other programs or stalls of the host disturbed, and that were not repeated: {number}"
    ),
    "host-stolen": N_("the hypervisor gave {share} of the CPU time to other guests during the windows of {arm}"),
    "throttled": N_("a CPU limit throttled all processes during {share} of the windows of {arm}"),
    "memory-pressure": N_(
        "processes waited for memory during {share} of the windows of {arm}: the servers and their data do not fit "
        "into memory together, or another program uses the memory"
    ),
    "disk-disturbed": N_(
        "processes waited for the disk during {share} of the windows of {arm}, although the servers of this comparison "
        "read and wrote hardly any data: something else used the disk"
    ),
    "cache-not-cold": N_(
        "up to {share} of the data of {arm} was still in the operating system's page cache (100 % if that could not "
        "be determined); shared buffers were empty"
    ),
    "few-transactions": N_(
        "{arm} ran only {each} transactions per window, fewer than {few} per client: use longer windows"
    ),
    "checkpoint-on-one-side": N_(
        "checkpoints during measurement: {baseline_count} on {baseline}, {contender_count} on {contender}"
    ),
    "autovacuum-on-one-side": N_(
        "autovacuum and autoanalyze runs during measurement: {baseline_count} on {baseline}, {contender_count} on "
        "{contender}"
    ),
    "no-checkpoint-ran": N_(
        "{names} may have had no effect: no checkpoint occurred on any arm during the measurement (use windows longer "
        "than checkpoint_timeout)"
    ),
    "no-autovacuum-ran": N_(
        "{names} may have had no effect: autovacuum did not run on any arm during the measurement (use windows longer "
        "than autovacuum_naptime)"
    ),
    "drift": N_(
        "the ratios of {arm} are correlated from block to block ({correlation}), so the interval may be too narrow: "
        "conditions may have changed during the measurement"
    ),
    "few-for-percentile": N_(
        "{percentiles} not available for every arm: too few transactions in a block ({fewest}; {percentile} needs "
        "{needed})"
    ),
    "interrupted": N_("the measurement was interrupted, so the verdicts are not final"),
}
"""Untranslated, by slug; not-steady has two."""
_STEADY = {
    True: N_(
        "{arm} became {share} faster from the first to the second half of each block: use a longer warm-up to measure "
        "its steady state"
    ),
    False: N_(
        "{arm} became {share} slower from the first to the second half of each block: use a longer warm-up to measure "
        "its steady state"
    ),
}


def _share(share: float) -> str:
    return f"{100 * share:.0f} %"


def _count(number: float) -> str:
    return f"{number:.0f}"


def _rate(tps: float) -> str:
    return significant(tps, 4)


def _hosts(ratios: Sequence[tuple[str, float]]) -> str:
    return ", ".join(f"{host} {ratio:.3f}" for host, ratio in ratios)


def _statements(names: Sequence[StatementName]) -> str:
    return "; ".join(map(statement_text, names))


def _uncertain(statements: Sequence[tuple[StatementName, Sequence[Uncertainty]]]) -> str:
    return "; ".join(uncertain_text(name, reasons) for name, reasons in statements)


def _differences(parts: Sequence[tuple[str, str, str]]) -> str:
    """Return all differences: name, value of the baseline, value of the contender."""
    return "; ".join(
        _(
            "{name} {baseline} vs {contender}",
            name=translate_stored(name),
            baseline=_quoted(baseline),
            contender=_quoted(contender),
        )
        for name, baseline, contender in parts
    )


def _first_differences(parts: Sequence[tuple[str, str, str]]) -> str:
    first, rest = _differences(parts[:_MOST_SHOWN]), len(parts) - _MOST_SHOWN
    return _("{first}; and {rest} more", first=first, rest=rest) if rest > 0 else first


def _problems(problems: Sequence[tuple[str, str]]) -> str:
    """Return the parts of a dump that a server rejected, with its messages."""
    shown = "; ".join(f"{item}: {message}" for item, message in problems[:_MOST_SHOWN])
    rest = len(problems) - _MOST_SHOWN
    return _("{first}; and {rest} more", first=shown, rest=rest) if rest > 0 else shown


def _quoted(value: str) -> str:
    return f'"{value}"' if value else _("none")


_FORMATS: Mapping[str, Callable[[Any], str]] = {
    "arms": both,
    "baseline_count": _count,
    "baseline_origin": origin_text,
    "contender_count": _count,
    "contender_origin": origin_text,
    "correlation": lambda value: f"{value:.2f}",
    "each": lambda value: f"{value:.1f}",
    "hosts": _hosts,
    "indexes": ", ".join,
    "metric": lambda metric: _(metric.label),
    "names": ", ".join,
    "parts": _first_differences,
    "phase": phase_word,
    "problems": _problems,
    "percentile": percentile_name,
    "percentiles": lambda quantiles: ", ".join(map(percentile_name, quantiles)),
    "rate": _rate,
    "reached": _rate,
    "settings": _differences,
    "share": _share,
    "tables": ", ".join,
    "statements": _statements,
    "uncertain": _uncertain,
    "window_s": latency,
}
"""The formatter of a value by its name; other values are texts and whole numbers."""
