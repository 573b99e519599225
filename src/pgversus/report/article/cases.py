"""Contexts that run the same work under one heading, and which form their tables have.

The form follows from what a study is made of, never from its name.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath

from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.sweeps import Sweep, sweeps
from pgversus.study.workload import Operation, Workload

_PAIR = 2


class Form(StrEnum):
    """Of the tables of a case."""

    OPERATION = "operation"
    """Mean and minimum of the times of each cell, difference and ratio."""
    AMOUNTS = "amounts"
    """The metric over levels that are amounts, beside what else is varied."""
    PAIR = "pair"
    """Two arms under one load: throughput, mean latency, ratio."""
    LOADS = "loads"
    """Several arms or loads: how many, how fast, and latencies from the shortest to the longest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is run, and every context that runs it."""

    name: str
    answers: tuple[Answer, ...]
    form: Form
    sweeps: tuple[Sweep, ...]
    """Of the form AMOUNTS; else empty."""
    factors: tuple[str, ...]
    """What is varied between its contexts, in the order of the study."""

    @property
    def workloads(self) -> Iterator[Workload]:
        """Each once: of one name there are several where workloads are what is compared, or loads differ."""
        seen = []
        for one in self.answers:
            for arm in one.comparison.arms:
                if arm.workload not in seen:
                    seen.append(arm.workload)
                    yield arm.workload


def cases(answer: StudyAnswer) -> list[Case]:
    """In the order of the study."""
    grouped: dict[str, list[Answer]] = {}
    for one in answer.answers:
        grouped.setdefault(_name(one), []).append(one)
    found = sweeps(answer)
    return [_case(name, tuple(ones), found) for name, ones in grouped.items()]


def level(one: Answer, factor: str) -> str:
    """The level of a factor that is fixed in a context; empty where it has none."""
    return dict(one.context.levels).get(factor, "")


def _name(one: Answer) -> str:
    workload = one.comparison.workload
    named = level(one, "workload")
    return named or (workload.name if isinstance(workload, Operation) else PurePath(workload.name).name)


def _case(name: str, answers: tuple[Answer, ...], found: list[Sweep]) -> Case:
    own = tuple(sweep for sweep in found if sweep.title in (name, ""))
    return Case(name=name, answers=answers, form=_form(answers, own), sweeps=own, factors=_varied(answers))


def _varied(answers: tuple[Answer, ...]) -> tuple[str, ...]:
    levels: dict[str, set[str]] = {}
    for one in answers:
        for name, found in one.context.levels:
            levels.setdefault(name, set()).add(found)
    return tuple(name for name, found in levels.items() if name != "workload" and len(found) > 1)


def _form(answers: tuple[Answer, ...], own: tuple[Sweep, ...]) -> Form:
    if any(isinstance(one.comparison.workload, Operation) for one in answers):
        return Form.OPERATION
    if own:
        return Form.AMOUNTS
    is_pair = len(answers) == 1 and len(answers[0].comparison.arms) == _PAIR
    return Form.PAIR if is_pair else Form.LOADS
