"""Groups the records of all sources by statement."""

from bisect import insort
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from pgversus.statements.document import ListedStatement
from pgversus.statements.literals import parameters_in, with_casts, with_lists
from pgversus.statements.parsing import Parsed, parsed
from pgversus.statements.statement import RecordedStatement, Sample

_MOST_SAMPLES = 100
"""Executions of a statement that are remembered to find a fast, a median and a slow one."""


@dataclass(slots=True)
class _Samples:
    """Executions by time: all of the first hundred, every second of the next ones, then every fourth, and so on."""

    found: list[Sample] = field(default_factory=list)
    seen: int = 0
    step: int = 1

    def add(self, sample: Sample) -> None:
        if self.seen % self.step == 0:
            insort(self.found, sample, key=_seconds)
            if len(self.found) > _MOST_SAMPLES:
                self.found = [*self.found[:-1:2], self.found[-1]]
                self.step *= 2
        self.seen += 1

    @property
    def three(self) -> tuple[Sample, ...]:
        """A fast, a median and a slow one, without repetition."""
        if not self.found:
            return ()
        last = len(self.found) - 1
        return tuple(dict.fromkeys((self.found[0], self.found[last // 2], self.found[last])))


def _seconds(sample: Sample) -> float:
    return sample.seconds or 0.0


@dataclass(slots=True)
class _Group:
    """Everything known about one statement."""

    first: Parsed
    text: str
    name: str = ""
    calls: int = 0
    seconds: float = 0.0
    rows: int | None = None
    has_counters: bool = False
    most_seconds: float = -1.0
    """Of the row of counters that has its text."""
    samples: _Samples = field(default_factory=_Samples)
    logged: int = 0
    """Executions in logs."""
    prepared: int = 0
    """Those that the application had prepared by name."""


class Collection:
    """Collects statements from any number of sources."""

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}
        self.database = ""
        """Name of the database whose executions count; empty if unknown."""

    def add_counters(self, text: str, *, calls: int, seconds: float, rows: int | None) -> None:
        """Add the counters of pg_stat_statements for a statement. Times from logs are then not added to them."""
        group = self._group(text)
        if not group.has_counters:
            group.has_counters, group.calls, group.seconds, group.rows = True, 0, 0.0, None
        if seconds > group.most_seconds:
            # Its text has parameters in place of constants. Before 18, there is a row for each length of a list.
            group.text, group.most_seconds = with_casts(with_lists(text)), seconds
        group.calls += calls
        group.seconds += seconds
        group.rows = rows if group.rows is None else group.rows + (rows or 0)

    def add_execution(self, sample: Sample, *, has_values: bool, is_prepared: bool = False) -> None:
        """Add an execution from a log. has_values: whether the values of all its parameters are known."""
        group = self._group(sample.text)
        group.logged += 1
        group.prepared += is_prepared
        if not group.has_counters:
            group.calls += 1
            group.seconds += sample.seconds or 0.0
        if has_values and parameters_in(sample.text) <= len(sample.values):
            group.samples.add(sample)

    def _add_group(self, other: _Group) -> None:
        """Add the executions from a log that another collection has of one statement."""
        group, samples = self._group(other.text), other.samples
        group.logged += other.logged
        group.prepared += other.prepared
        if not group.has_counters:
            group.calls += other.calls
            group.seconds += other.seconds
        if not group.samples.seen:
            group.samples = samples
            return
        for sample in samples.found:
            # Each stands for as many executions as were seen for it.
            for _ in range(samples.step):
                group.samples.add(sample)

    @property
    def fingerprints(self) -> AbstractSet[str]:
        """Those of its statements."""
        return self._groups.keys()

    def hand_over(self, other: "Collection") -> None:
        """Add the executions of this collection, which has nothing else, to another one."""
        for group in self._groups.values():
            other._add_group(group)  # noqa: SLF001 - of the same class

    def add_listed(self, listed: ListedStatement) -> None:
        """Add a statement of an earlier list, with its counters and samples."""
        if listed.calls:
            self.add_counters(listed.text, calls=listed.calls, seconds=listed.seconds, rows=listed.rows)
        group = self._group(listed.text)
        group.name = group.name or listed.name
        # The list has no number of logged executions.
        group.logged += 1
        group.prepared += listed.is_prepared
        for sample in listed.samples:
            if parameters_in(sample.text) <= len(sample.values):
                group.samples.add(sample)

    def add_file(
        self, name: str, text: str, values: Iterable[tuple[str | None, ...]] = (), *, executed: str = ""
    ) -> None:
        """Add a statement from a file of SQL, with the values given there. Its number of calls is unknown.

        executed: the same statement with values in place of its parameters; empty if they are unknown.
        """
        group = self._group(text)
        group.name = group.name or name
        samples = [Sample(text=text, values=one) for one in values]
        if not samples and (executed or not parameters_in(text)):
            samples = [Sample(text=executed or text)]
        for sample in samples:
            group.samples.add(sample)

    @property
    def statements(self) -> list[RecordedStatement]:
        """The statements, largest total time first."""
        found = [
            RecordedStatement(
                fingerprint=group.first.fingerprint,
                kind=group.first.kind,
                problem=group.first.problem,
                text=group.text,
                parameters=parameters_in(group.text),
                calls=group.calls,
                seconds=group.seconds,
                rows=group.rows,
                samples=group.samples.three,
                name=group.name,
                is_prepared=group.prepared > 0 and 2 * group.prepared >= group.logged,
            )
            for group in self._groups.values()
        ]
        return sorted(found, key=lambda one: (-one.seconds, one.name, one.text))

    def _group(self, text: str) -> _Group:
        found = parsed(text)
        return self._groups.setdefault(found.fingerprint, _Group(first=found, text=text))
