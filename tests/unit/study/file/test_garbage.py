"""Whatever the file holds, it is a study or a list of problems, and never anything else."""

import datetime as dt
import math
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pgversus.errors import StudyFileError
from pgversus.study.file.description import schema_at, tables
from pgversus.study.file.reference import LONG_EXAMPLE, OPERATION_EXAMPLE
from pgversus.study.file.values import as_key, as_toml
from tests.unit.study.file.reading import SHORT, study

EACH = 10
"""Files made from one seed: most of the time of a property test goes into drawing, not into reading."""

TABLES = list(tables())
KEYS = sorted(
    {key for _, table in TABLES for key in table["properties"]} | {"weight", "name", "quick", "a", "b.c", "", "jit"}
)
SCALARS: list[Any] = [True, False, 0, 1, 4, -3, 2**31, 2**63, 10**40, 0.5, 1e300, -0.0, math.inf, math.nan]
SCALARS += [
    "",
    "16",
    "17.8",
    "warm",
    "server",
    "tps",
    "2%",
    "5m",
    "a",
    "tpcb-like",
    "q.sql",
    "missing",
    "latin",
    "é\u3042",
]
SCALARS += ["\0", "a b", "postgresql://u:p@h/d", dt.date(2024, 1, 1), dt.time(1, 2)]


def many(count: int) -> settings:
    """So many examples, the same in every run."""
    ignored = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=count, derandomize=True, deadline=None, suppress_health_check=ignored)


def is_study_or_problems(text: str, profile: str | None = None) -> bool:
    """Whether the file was accepted; anything but a list of problems with all their parts fails the test."""
    try:
        found = study(text, profile=profile)
    except StudyFileError as error:
        assert error.problems  # noqa: PT017 - both are right
        for problem in error.problems:
            assert problem.what
            assert problem.where.startswith("planner.toml")
            assert problem.found
            assert problem.expected
            assert problem.to_do
            assert "\n" not in problem.what + problem.where
            assert problem.slug.startswith("study-")
        return False
    assert found.contexts
    return True


@pytest.mark.parametrize("above", ["", "[factors]", "[settings]", "[datasets]", "[workloads]", "[profiles]"])
@pytest.mark.parametrize("value", ["1", '"workloads"', '["1", "2"]', "{x = 1}"])
def test_a_key_may_have_any_name(above: str, value: str) -> None:
    text = SHORT.replace("[factors]", f'[factors]\n"[key]" = {value}') if above == "[factors]" else SHORT
    text = f'"[key]" = {value}\n{text}' if not above else text
    assert not is_study_or_problems(text if above in ("", "[factors]") else f'{text}\n{above}\n"[key]" = {value}\n')


def any_value(rng: Random, depth: int = 3) -> Any:
    kind = rng.randrange(6) if depth else 0
    if kind == 1:
        return [any_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind == 2:
        return {key: any_value(rng, depth - 1) for key in rng.sample(KEYS, rng.randrange(4))}
    return rng.choice(SCALARS)


def as_text(document: dict[str, Any]) -> str:
    return "".join(f"{as_key(key)} = {as_toml(value)}\n" for key, value in document.items())


def near_a_good_one(rng: Random) -> str:
    """A document whose tables have their own keys, with values that may be wrong."""
    document: dict[str, Any] = {"title": "t", "workload": {"sql": "1"}, "factors": {"server": ["16", "17"]}}
    for header, table in rng.sample(TABLES, rng.randrange(5)):
        name = header.strip("[]")
        target = document.setdefault(name, {}) if name else document
        for key in rng.sample(list(table["properties"]), rng.randrange(4)):
            example = schema_at((name, key) if name else (key,))["examples"][0]
            if isinstance(target, dict):
                target[key] = example if rng.random() < 0.7 else any_value(rng)
    return as_text(document)


def mutated(rng: Random, text: str) -> str:
    """The text with some characters, words or lines lost, doubled, exchanged or replaced."""
    for _ in range(rng.randint(1, 3)):
        separator = rng.choice(["", "\n", " "])
        parts = list(text) if not separator else text.split(separator)
        if not parts:
            break
        at = rng.randrange(len(parts))
        pieces = ["", "x", '"', "[", "]", "=", "1", ".", "\n", "\0", "\ud7ff", "\r", rng.choice(parts)]
        parts[at : at + rng.randrange(3)] = [rng.choice(pieces)]
        text = separator.join(parts)
    return text


@many(1000)
@given(st.text(max_size=80) | st.text(alphabet="ab01.=[]{}\"'#, \n\\-:", max_size=80))
def test_any_text_is_a_study_or_problems(text: str) -> None:
    assert not is_study_or_problems(text)


@many(300)
@given(st.integers(0, 2**64))
def test_any_document_of_real_keys_is_a_study_or_problems(seed: int) -> None:
    rng = Random(seed)  # noqa: S311 - a test, no secret
    for _ in range(EACH):
        document = {key: any_value(rng) for key in rng.sample(KEYS, rng.randrange(7))}
        is_study_or_problems(as_text(document), rng.choice([None, "quick", "a"]))


@many(300)
@given(st.integers(0, 2**64))
def test_any_document_near_a_good_one_is_a_study_or_problems(seed: int) -> None:
    rng = Random(seed)  # noqa: S311 - a test, no secret
    for _ in range(EACH):
        is_study_or_problems(near_a_good_one(rng))


@many(320)
@given(st.integers(0, 2**64))
def test_any_mutation_of_a_good_file_is_a_study_or_problems(seed: int) -> None:
    rng = Random(seed)  # noqa: S311 - a test, no secret
    for _ in range(EACH):
        text = mutated(rng, rng.choice([SHORT, LONG_EXAMPLE, OPERATION_EXAMPLE]))
        is_study_or_problems(text, rng.choice([None, "quick", "published"]))
