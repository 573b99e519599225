"""Additional targets of an upgrade check: a copy of each target with other statistics or with its own defaults."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from pgversus.errors import StudyError
from pgversus.study.comparison import Arm
from pgversus.study.dataset import Statistics
from pgversus.study.design import MOST_CONTENDERS
from pgversus.study.servers import Release, ServerName, SourceBuild
from pgversus.study.settings import Setting

_STATISTICS = "statistics"
"""The factor of targets with other statistics."""
_WITH_STATISTICS = {Statistics.NONE: "without statistics", Statistics.KEPT: "with kept statistics"}
CHANGED_DEFAULTS: Mapping[str, Mapping[int, str]] = {
    "checkpoint_completion_target": {12: "0.5", 14: "0.9"},
    "vacuum_cost_page_miss": {12: "10", 14: "2"},
    "hash_mem_multiplier": {13: "1", 15: "2"},
    "vacuum_buffer_usage_limit": {16: "256kB", 17: "2MB"},
    "effective_io_concurrency": {12: "1", 18: "16"},
    "maintenance_io_concurrency": {13: "10", 18: "16"},
}
"""Defaults by the major version that introduced them, 12 for older ones (release notes of 14, 15, 17 and 18)."""


def with_statistics(
    arms: Sequence[Arm], factors: tuple[str, ...], kinds: Iterable[str]
) -> tuple[tuple[Arm, ...], tuple[str, ...]]:
    """Return the arms, with a copy of each target for each of these kinds of statistics, and the factors.

    StudyError if there are more arms than a comparison may have.
    """
    others = [Statistics(name) for name in dict.fromkeys(kinds)]
    if not others:
        return tuple(arms), factors
    return _with_more(arms, lambda arm: [_with_other_statistics(arm, kind) for kind in others]), (*factors, _STATISTICS)


def with_new_defaults(
    arms: Sequence[Arm], factors: tuple[str, ...], carried: Collection[str]
) -> tuple[tuple[Arm, ...], tuple[str, ...]]:
    """Return the arms, with a copy of each target that has its own defaults, and the factors.

    The copy uses its own default for each setting that has the source's default. carried: names of the settings of the
    application's server. StudyError if none of them has an old default.
    """
    old = {arm.index: _at_old_default(arms[0], arm, carried) for arm in arms[1:]}
    names = tuple(dict.fromkeys(name for found in old.values() for name in found))
    if not names:
        raise _no_old_default(arms)
    return _with_more(arms, lambda arm: _without_settings(arm, old[arm.index])), (*factors, *names)


def _with_more(arms: Sequence[Arm], more: Callable[[Arm], Iterable[Arm]]) -> tuple[Arm, ...]:
    """Return the arms, each target followed by its copies; StudyError for more arms than a comparison may have."""
    targets = [one for arm in arms[1:] for one in (arm, *more(arm))]
    if len(targets) > MOST_CONTENDERS:
        raise StudyError(
            "too many targets for one check",
            slug="study-too-many-arms",
            where="servers, --statistics and --new-defaults",
            found=f"{len(targets)} targets",
            expected=f"at most {MOST_CONTENDERS}: their verdicts share an error rate of 5 %",
            to_do="check fewer servers or kinds of statistics at a time",
        )
    return arms[0], *(replace(one, index=index) for index, one in enumerate(targets, start=1))


def _with_other_statistics(arm: Arm, kind: Statistics) -> Arm:
    label = f"{arm.label} {_WITH_STATISTICS[kind]}"
    return replace(arm, label=label, dataset=replace(arm.dataset, statistics=kind))


def _without_settings(arm: Arm, names: Collection[str]) -> list[Arm]:
    """Return the arm without these settings, in a list, which is empty without names."""
    kept = tuple(one for one in arm.settings if one.name not in names)
    return [replace(arm, label=f"{arm.label} with new defaults", settings=kept)] if names else []


def _at_old_default(source: Arm, target: Arm, carried: Collection[str]) -> list[str]:
    majors = major_of(source.server), major_of(target.server)
    if majors[0] is None or majors[1] is None:
        raise StudyError(
            "the defaults of a server are unknown, because its version is unknown",
            slug="study-no-new-defaults",
            where=f"--new-defaults, {source.label} and {target.label}",
            found="a server that is not specified by its version",
            expected="versions, such as 16 and 18.1",
            to_do="specify the servers by their versions, or omit --new-defaults",
        )
    return at_old_default((one for one in target.settings if one.name in carried), majors[0], majors[1])


def _no_old_default(arms: Sequence[Arm]) -> StudyError:
    return StudyError(
        "every target already uses its own defaults",
        slug="study-no-new-defaults",
        where="--new-defaults",
        found=f"no setting in the --conf file with a default value of {arms[0].label} that later versions changed",
        expected=f"one of {', '.join(sorted(CHANGED_DEFAULTS))}",
        to_do="omit --new-defaults",
    )


def default_in(name: str, major: int) -> str | None:
    """Return the default of a setting in a major version; None if it has not changed, or does not exist there."""
    known = [value for since, value in CHANGED_DEFAULTS.get(name.lower(), {}).items() if since <= major]
    return known[-1] if known else None


def at_old_default(settings: Iterable[Setting], source: int, target: int) -> list[str]:
    """Return the names of settings that have the source's default if the target's default is different."""
    names = []
    for one in settings:
        old, new = default_in(one.name, source), default_in(one.name, target)
        if old is not None and old != new and _plain(one.value) == _plain(old):
            names.append(one.name)
    return names


def major_of(server: ServerName) -> int | None:
    """Return the major version of a server; None if it is not part of its name."""
    source = server.source if isinstance(server, SourceBuild) else server
    return source.major if isinstance(source, Release) else None


def _plain(value: str) -> str:
    """Return a value in a form in which equal values are equal texts: `0.50` and `.5`, `256 kB` and `256kB`."""
    bare = "".join(value.split()).lower()
    try:
        return repr(float(bare))
    except ValueError:
        return bare
