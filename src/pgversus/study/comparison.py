"""Arms, dataset, workload and design together: the whole of one question."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product

from pgversus.errors import StudyError
from pgversus.study.dataset import Dataset
from pgversus.study.design import MOST_CONTENDERS, Design
from pgversus.study.servers import ServerName
from pgversus.study.settings import Setting, SettingLevels
from pgversus.study.workload import Workload
from pgversus.text.redaction import value_without_secrets

BASELINE = 0


class CacheState(StrEnum):
    """What is in memory when a window begins."""

    WARM = "warm"
    """The data are read in and the load has run for a while."""
    COLD = "cold"
    """Every window begins on a server just started, its data out of the system's page cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One side of a comparison: a server and the settings that hold in every session of its load."""

    index: int
    """Position in the comparison; 0 is the baseline."""
    label: str
    """How it is called in every output; unique in its comparison, without passwords."""
    server: ServerName
    settings: tuple[Setting, ...]
    workload: Workload
    dataset: Dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The baseline and its contenders, everything equal but the factors."""

    arms: tuple[Arm, ...]
    factors: tuple[str, ...]
    """What differs on purpose: `server`, `workload`, `dataset`, names of settings."""
    design: Design
    cache: CacheState = CacheState.WARM

    @property
    def contenders(self) -> tuple[Arm, ...]:
        """Every arm but the baseline."""
        return self.arms[1:]

    @property
    def workload(self) -> Workload:
        """The baseline's workload; every arm's, unless the workload is what is compared."""
        return self.baseline.workload

    @property
    def dataset(self) -> Dataset:
        """The baseline's data; every arm's, unless the dataset is what is compared."""
        return self.baseline.dataset

    @property
    def baseline(self) -> Arm:
        """The arm that all others are held against."""
        return self.arms[BASELINE]


def expand_arms(
    servers: Sequence[tuple[str, ServerName]],
    settings: Sequence[SettingLevels],
    *,
    workload: Workload,
    dataset: Dataset,
) -> tuple[tuple[Arm, ...], tuple[str, ...]]:
    """Every combination of server and levels as an arm, and the names of the factors; the first is the baseline.

    servers: (label, name) pairs. A server named twice is an A/A comparison; its labels get a number.
    StudyError when there is nothing to compare.
    """
    factors = [setting for setting in settings if len(setting.values) > 1]
    combinations = list(product(servers, product(*([(s.name, v) for v in s.values] for s in settings))))
    labels = unique_labels([_label(name, levels, servers, factors) for (name, _), levels in combinations])
    arms = tuple(
        Arm(
            index=index,
            label=labels[index],
            server=server,
            settings=tuple(Setting(name=name, value=value) for name, value in levels),
            workload=workload,
            dataset=dataset,
        )
        for index, ((_, server), levels) in enumerate(combinations)
    )
    if len(arms) < 2:  # noqa: PLR2004 - a comparison has two sides
        raise StudyError(
            "there is only one arm, so there is nothing to compare",
            slug="study-one-arm",
            where="servers and --set",
            found=labels[0] if labels else "nothing",
            expected="two or more servers, or a setting with two or more levels",
            to_do="name a second server (the same one twice is an A/A comparison), or give --set NAME=A,B",
        )
    if len(arms) > MOST_CONTENDERS + 1:
        raise StudyError(
            "there are too many arms for one comparison",
            slug="study-too-many-arms",
            where="servers and --set",
            found=f"{len(arms)} arms",
            expected=f"at most {MOST_CONTENDERS + 1}: their verdicts share one error of 5 %",
            to_do="leave levels out, or compare them in parts",
        )
    names = (("server",) if len(servers) > 1 else ()) + tuple(setting.name for setting in factors)
    return arms, names


def _label(
    server: str,
    levels: Sequence[tuple[str, str]],
    servers: Sequence[tuple[str, ServerName]],
    factors: Sequence[SettingLevels],
) -> str:
    varied = {setting.name for setting in factors}
    parts = [f"{name}={value_without_secrets(name, value)}" for name, value in levels if name in varied]
    if len(servers) > 1 or not parts:
        parts.insert(0, server)
    return " ".join(parts)


def unique_labels(labels: Sequence[str]) -> list[str]:
    """The same labels, with a number behind each that was there before: `17`, `17 (2)`."""
    taken: dict[str, None] = {}
    # Of each label the first number that may be free.
    numbers: dict[str, int] = {}
    for label in labels:
        number = numbers.get(label, 1)
        while (name := label if number == 1 else f"{label} ({number})") in taken:
            number += 1
        numbers[label] = number + 1
        taken[name] = None
    return list(taken)
