"""Expands factors into contexts and arms: every measured combination, in the order of the file.

Parts that many arms share are created once, so ten thousand combinations are a list of references.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TypeVar

from pgversus.errors import StudyError
from pgversus.study.comparison import Arm, Comparison, with_equal_bytes
from pgversus.study.dataset import Dataset
from pgversus.study.design import MOST_CONTENDERS, Design, DesignChoices, design_of, with_window
from pgversus.study.file import schema
from pgversus.study.file.document import as_key
from pgversus.study.file.keys import merged_settings, quantity
from pgversus.study.file.matrix import Factor, Matrix, Variable
from pgversus.study.file.problems import Problems
from pgversus.study.file.selection import Indexes, Selection
from pgversus.study.file.workloads import NamedLoad, NamedWorkload
from pgversus.study.metrics import JUDGED_BY_NAME, Metric
from pgversus.study.settings import Setting
from pgversus.study.study import Context
from pgversus.study.workload import PgbenchWorkload
from pgversus.text.units import (
    parse_duration,
    parse_pin,
    parse_precision,
    parse_share,
    parse_whole_seconds,
    parse_window,
)


def choices_of(table: schema.DesignTable | None, problems: Problems, *, seed: int) -> DesignChoices:
    """Return the design choices of the file. seed: used if the file has none."""
    table = table or schema.DesignTable()
    choices = DesignChoices(
        metric=JUDGED_BY_NAME[table.metric] if table.metric else None,
        margin=quantity(("design", "margin"), table.margin, parse_share, problems),
        precision=quantity(("design", "precision"), table.precision, parse_precision, problems),
        budget_s=quantity(("design", "budget"), table.budget, parse_duration, problems),
        max_blocks=table.max_blocks,
        fixed_blocks=table.blocks,
        window=quantity(("design", "window"), table.window, parse_window, problems),
        rounds=table.windows,
        warm_up_s=quantity(("design", "warm_up"), table.warm_up, parse_whole_seconds, problems),
        pin=quantity(("design", "pin"), table.pin, parse_pin, problems),
        seed=seed if table.seed is None else table.seed,
    )
    return with_one_stopping_rule(choices, problems)


def with_one_stopping_rule(choices: DesignChoices, problems: Problems) -> DesignChoices:
    """Return the choices; if they have both a fixed number of blocks and a limit, report it and return the limit."""
    if not choices.other_stopping_rules:
        return choices
    error = StudyError(
        "blocks fixes the number of blocks, so neither a limit nor a precision can end the measurement",
        slug="study-two-designs",
        found=f"blocks with {' and '.join(choices.other_stopping_rules)}",
        expected=f"blocks alone, or {' and '.join(choices.other_stopping_rules)} without blocks",
        to_do="remove blocks to stop as soon as the answer is known, or omit the others (also --budget)",
    )
    problems.add(("design", "blocks"), error)
    return replace(choices, fixed_blocks=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Designs:
    """The design of every context."""

    of_loads: Mapping[str, Design]
    """Designs by the name of the load."""
    of_operations: Design | None
    """The design of operations; None without operations."""

    def of(self, workload: NamedWorkload, load: NamedLoad) -> Design:
        """Return the design of a context with this workload and load."""
        if workload.operation is not None and self.of_operations is not None:
            return self.of_operations
        return self.of_loads[load.name]


def designs_for(
    workloads: Iterable[NamedWorkload], loads: Iterable[NamedLoad], choices: DesignChoices, problems: Problems
) -> Designs:
    """Return the designs of these workloads and loads; an invalid design is omitted and reported as a problem."""
    kinds = {workload.operation is not None for workload in workloads if not workload.is_broken}
    # If no workload is valid, the metric shows which kind was meant.
    kinds = kinds or {choices.metric is Metric.TIME}
    return Designs(
        of_operations=_of_operations(choices, problems) if True in kinds else None,
        of_loads=_of_loads(list(loads), choices, problems) if False in kinds else {},
    )


def _of_operations(choices: DesignChoices, problems: Problems) -> Design | None:
    for key, value in (("window", choices.window), ("windows", choices.rounds), ("warm_up", choices.warm_up_s)):
        if value is not None:
            problems.add(
                ("design", key),
                StudyError(
                    "an operation runs as a whole, on a fresh copy: it has neither windows nor a warm-up",
                    slug="study-windows-of-operation",
                    found=key,
                    expected="no window options if a workload is an operation",
                    to_do=f"remove {key}; loads may have a window of their own in [load]",
                ),
            )
    with problems.catch(("design", "metric"), to_do="remove metric: operations are compared by time"):
        return design_of(replace(choices, window=None, rounds=None, warm_up_s=None), is_operation=True)
    return None


def _of_loads(loads: Sequence[NamedLoad], choices: DesignChoices, problems: Problems) -> Mapping[str, Design]:
    to_do = "remove metric to compare p95 latency under a rate, or remove rate"
    if choices.metric is Metric.TIME:
        to_do = "remove metric: loads are compared by tps, or by p95 latency under a rate"
    kinds: dict[bool, Design] = {}
    for is_open_loop in sorted({load.rate is not None for load in loads}):
        with problems.catch(("design", "metric"), to_do=to_do):
            kinds[is_open_loop] = design_of(choices, is_open_loop=is_open_loop)
    kind_of = {load.name: kinds.get(load.rate is not None) for load in loads}
    return {load.name: _of_load(design, load) for load in loads if (design := kind_of[load.name])}


def _of_load(design: Design, load: NamedLoad) -> Design:
    return design if load.window is None else with_window(design, load.window)


T = TypeVar("T")

MOST_TREATMENTS = 100_000
"""More would take months to measure, and gigabytes to store."""
_LARGEST_SHOWN = 10**1000

_SERVER, _WORKLOAD, _DATASET, _LOAD, _SCALE, _CACHE, _SETTINGS = range(7)
# The order of Matrix.factors; settings are followed by variables.


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPlan:
    """Everything needed to create contexts."""

    matrix: Matrix
    compared: int
    """Position of the factor whose levels are the arms."""
    baseline: int
    """Position of the baseline among these levels."""
    selection: Selection
    shared: tuple[Setting, ...]
    """Settings of every arm."""
    designs: Designs


def check_treatment_count(matrix: Matrix, problems: Problems) -> None:
    """Add a problem if the factors have too many combinations, which are counted without creating them."""
    sizes = [len(factor.levels) for factor in matrix.factors]
    product_of_all = math.prod(sizes)
    if product_of_all > MOST_TREATMENTS:
        # Python limits the digits of integers that it converts to text.
        shown = str(product_of_all) if product_of_all < _LARGEST_SHOWN else "more than 1e1000"
        counts = " x ".join(str(size) for size in sizes if size > 1)
        problems.add(
            ("factors",),
            StudyError(
                "the study has too many combinations",
                slug="study-too-many-treatments",
                found=f"{counts} = {shown}",
                expected=f"at most {MOST_TREATMENTS}",
                to_do="remove levels, or split the study",
            ),
        )


def contexts_of(plan: StudyPlan, problems: Problems) -> tuple[Context, ...]:
    """Return every comparison of the study, numbered from 1; obstacles are added to the problems."""
    assembler = _Assembler(plan)
    contexts: list[Context] = []
    headless: list[tuple[Indexes, Indexes]] = []
    largest = 0
    levels = _levels(plan)
    for fixed in _fixed(plan):
        arms = [(*fixed[: plan.compared], level, *fixed[plan.compared + 1 :]) for level in levels]
        admitted = [combination for combination in arms if plan.selection.admits(combination)]
        if admitted and admitted[0] != arms[0]:
            headless.append((arms[0], fixed))
        elif len(admitted) > 1:
            largest = max(largest, len(admitted))
            with problems.catch(("factors", "server")):
                contexts.append(assembler.context(len(contexts) + 1, fixed, admitted))
    plan.selection.check_used_rows(problems)
    _check(plan, contexts, headless, largest, problems)
    return tuple(contexts)


def _fixed(plan: StudyPlan) -> Iterator[Indexes]:
    sizes = [len(factor.levels) for factor in plan.matrix.factors]
    sizes[plan.compared] = 1
    return product(*map(range, sizes))


def _levels(plan: StudyPlan) -> list[int]:
    count = len(plan.matrix.factors[plan.compared].levels)
    return [plan.baseline, *(level for level in range(count) if level != plan.baseline)]


def _check(
    plan: StudyPlan, contexts: list[Context], headless: list[tuple[Indexes, Indexes]], largest: int, problems: Problems
) -> None:
    factor = plan.matrix.factors[plan.compared]
    if headless:
        combination, fixed = headless[0]
        where = " ".join(f"{name}={level}" for name, level in _named_levels(plan, fixed)) or "the study"
        baseline = factor.levels[plan.baseline].label
        others = f" and {len(headless) - 1} more" if len(headless) > 1 else ""
        problems.add(
            plan.selection.excluding(combination),
            StudyError(
                "the baseline of a comparison is excluded",
                slug="study-lost-baseline",
                found=f"no {as_key(factor.name)} {baseline} in {where}{others}",
                expected="the baseline wherever one of its contenders is measured",
                to_do="exclude the contenders there as well, or choose another baseline",
            ),
        )
    elif not contexts and not problems.lost("factors", "server"):
        problems.add(
            ("only",) if plan.selection.is_limited else ("exclude",),
            StudyError(
                "no comparison is left",
                slug="study-no-context",
                found="every combination, or every contender, is excluded",
                expected="a baseline and at least one contender in at least one context",
                to_do="remove the [[exclude]] or [[only]] that excludes too much",
            ),
        )
    if largest > MOST_CONTENDERS + 1:
        problems.add(
            factor.path,
            StudyError(
                "too many arms for one comparison",
                slug="study-too-many-arms",
                found=f"{largest} levels of {as_key(factor.name)}",
                expected=f"at most {MOST_CONTENDERS + 1}: their verdicts share an error rate of 5 %",
                to_do="remove levels, or split the comparison",
            ),
        )


def _named_levels(plan: StudyPlan, fixed: Indexes) -> tuple[tuple[str, str], ...]:
    return tuple(
        (factor.name, factor.levels[level].label)
        for position, (factor, level) in enumerate(zip(plan.matrix.factors, fixed, strict=True))
        if factor.is_varied and position != plan.compared
    )


@dataclass(slots=True)
class _Assembler:
    """Creates contexts, and parts that many of them share only once."""

    plan: StudyPlan
    _datasets: dict[tuple[int, int | None], Dataset] = field(default_factory=dict)
    _prepared: dict[tuple[int, int, Indexes], Dataset] = field(default_factory=dict)
    _loads: dict[tuple[int, int, int | None, Indexes], PgbenchWorkload] = field(default_factory=dict)
    _settings: dict[tuple[int, Indexes], tuple[Setting, ...]] = field(default_factory=dict)

    def context(self, number: int, fixed: Indexes, combinations: list[Indexes]) -> Context:
        """Return the context of these combinations, baseline first."""
        matrix = self.plan.matrix
        factor = matrix.factors[self.plan.compared]
        load = matrix.load.levels[fixed[_LOAD]].value
        comparison = Comparison(
            arms=with_equal_bytes(
                self._arm(index, factor, combination) for index, combination in enumerate(combinations)
            ),
            factors=(factor.name,),
            design=self.plan.designs.of(matrix.workload.levels[combinations[0][_WORKLOAD]].value, load),
            cache=matrix.cache.levels[fixed[_CACHE]].value,
        )
        return Context(number=number, levels=_named_levels(self.plan, fixed), comparison=comparison)

    def _arm(self, index: int, factor: Factor[object], combination: Indexes) -> Arm:
        matrix = self.plan.matrix
        label = factor.levels[combination[self.plan.compared]].label
        workload = matrix.workload.levels[combination[_WORKLOAD]].value
        load = matrix.load.levels[combination[_LOAD]].value
        loaded = self._dataset(
            matrix.dataset.levels[combination[_DATASET]].value or workload.dataset,
            matrix.scale.levels[combination[_SCALE]].value,
        )
        variables = combination[_SETTINGS + len(matrix.settings) :]
        return Arm(
            index=index,
            label=f"{factor.name}={label}" if self.plan.compared >= _SETTINGS else label,
            server=matrix.server.levels[combination[_SERVER]].value,
            settings=self._arm_settings(workload, combination[_SETTINGS : _SETTINGS + len(matrix.settings)]),
            workload=workload.operation or self._load(workload, load, loaded.pgbench_scale, variables),
            dataset=self._as_prepared(loaded, workload, variables) if workload.prepare else loaded,
        )

    def _dataset(self, named: Dataset | None, scale: int | None) -> Dataset:
        key = (id(named), scale)
        if key not in self._datasets:
            own = named or Dataset()
            self._datasets[key] = replace(own, pgbench_scale=scale or own.pgbench_scale)
        return self._datasets[key]

    def _as_prepared(self, loaded: Dataset, named: NamedWorkload, variables: Indexes) -> Dataset:
        key = (id(loaded), id(named), variables)
        if key not in self._prepared:
            chosen = self._variables(named, variables)
            self._prepared[key] = replace(loaded, prepare=named.prepare, variables=chosen)
        return self._prepared[key]

    def _load(self, named: NamedWorkload, load: NamedLoad, scale: int | None, variables: Indexes) -> PgbenchWorkload:
        key = (id(named), id(load), scale, variables)
        if key not in self._loads:
            self._loads[key] = PgbenchWorkload(
                scripts=named.scripts,
                clients=load.clients,
                threads=load.threads,
                query_mode=load.query_mode,
                variables=self._variables(named, variables),
                rate=load.rate,
                scale=scale,
                rewrite=named.rewrite,
            )
        return self._loads[key]

    def _variables(self, named: NamedWorkload, levels: Indexes) -> tuple[Variable, ...]:
        """Return the variables of the workload and of these levels; a level overrides the workload's own value."""
        chosen = _values(self.plan.matrix.variables, levels)
        return tuple({**dict(named.variables), **dict(chosen)}.items())

    def _arm_settings(self, workload: NamedWorkload, levels: Indexes) -> tuple[Setting, ...]:
        key = (id(workload), levels)
        if key not in self._settings:
            chosen = _values(self.plan.matrix.settings, levels)
            self._settings[key] = merged_settings(self.plan.shared, workload.settings, chosen)
        return self._settings[key]


def _values(factors: tuple[Factor[T], ...], levels: Indexes) -> list[T]:
    return [factor.levels[level].value for factor, level in zip(factors, levels, strict=True)]
