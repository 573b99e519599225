"""Findings of an earlier upgrade check, read from its JSON document: known ones need not fail the next check."""

from collections import defaultdict
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from pgversus.answers.findings import Finding, StatementFinding
from pgversus.errors import StudyError
from pgversus.statements.literals import parameters_in
from pgversus.statements.parsing import parsed
from pgversus.statements.statement import ValueClass
from pgversus.stats.confidence import ratio_bounds
from pgversus.text.validation import first_problem


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statement:
    text: str
    value_class: ValueClass | None = None
    """None in older documents, and for values that were recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    statement: _Statement
    finding: Finding
    low: float | None = None
    """Lower bound of target / source in throughput."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Upgrade:
    target: str
    statements: tuple[_Found, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _UpgradeDocument:
    upgrades: tuple[_Upgrade, ...]


_DOCUMENT = TypeAdapter(_UpgradeDocument)


_Key = tuple[str, str, ValueClass | None, Finding]
"""Target, identity of the statement, class of its values, and finding."""


class KnownFindings:
    """The findings of an earlier check."""

    def __init__(self, document: str, where: str) -> None:
        """document: of an upgrade check, in JSON; StudyError for anything else. where: its path, for messages."""
        upgrades = _read(document, where).upgrades
        self._lows: dict[_Key, list[float | None]] = defaultdict(list)
        """The lower bounds of all findings that are alike."""
        for one in upgrades:
            for found in one.statements:
                key = (one.target, _identity(found.statement.text), found.statement.value_class, found.finding)
                self._lows[key].append(found.low)

    def has(self, target: str, found: StatementFinding) -> bool:
        """Return whether a statement has the same finding on a target of the same name.

        A statement that has become slower since then, so that the intervals do not overlap, is not known.
        """
        statement = found.statement
        key = (target, _identity(statement.text), statement.value_class, found.finding)
        high = None
        is_slower = found.finding is Finding.SLOWER or found.is_confirmed_slower(target)
        if is_slower and found.log_ratio is not None:
            _, high = ratio_bounds(found.log_ratio.interval)
        return any(high is None or low is None or high >= low for low in self._lows.get(key, ()))


def _identity(text: str) -> str:
    """Return what identifies a statement: its text or, if it has parameters, its fingerprint.

    Counters have a text for each length of a list of parameters, and a fingerprint is the same for all lengths.
    """
    return parsed(text).fingerprint if parameters_in(text) else text


def _read(text: str, where: str) -> _UpgradeDocument:
    try:
        return _DOCUMENT.validate_json(text)
    except ValidationError as error:
        raise StudyError(
            "not the answer of an upgrade check",
            slug="study-no-known-findings",
            where=where,
            found=first_problem(error),
            expected="a JSON document of pgversus upgrade-check",
            to_do="pgversus report DIR --json -o FILE, with the results of an earlier upgrade check",
        ) from error
