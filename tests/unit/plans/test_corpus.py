"""Real plans of five majors: changes are found, and formatting differences are ignored."""

import csv
import json
from collections.abc import Iterator
from functools import cache

import pytest

from pgversus.plans.difference import PlanDifference, difference
from pgversus.plans.explain import read_plans
from pgversus.plans.levels import PlanLevel
from pgversus.plans.plan import Plan
from pgversus.plans.sentences import sentences
from pgversus.text.translation import Language, use_language
from tests.builders import DATA

CORPUS = DATA / "plans" / "corpus"


def steps() -> Iterator[tuple[str, str, str, str]]:
    with (CORPUS / "changes.csv").open() as file:
        for row in csv.DictReader(file):
            yield row["name"], row["from"], row["to"], row["level"]


STEPS = list(steps())


@cache
def plans(name: str) -> dict[str, Plan]:
    explained = json.loads((CORPUS / f"{name}.json").read_text())["explain"]
    found = {}
    for major, document in explained.items():
        (found[major],) = read_plans(json.dumps(document), f"{name} {major}")
    return found


def changed(name: str, one: str, other: str) -> PlanDifference:
    return difference(plans(name)[one], plans(name)[other])


@pytest.mark.parametrize(("name", "one", "other", "level"), STEPS)
def test_each_step_between_majors_has_the_expected_level(name: str, one: str, other: str, level: str) -> None:
    found = changed(name, one, other).level
    assert (PlanLevel.IDENTICAL if found is PlanLevel.WORK else found) == level


@pytest.mark.parametrize(("name", "one", "other", "level"), STEPS)
def test_the_reverse_difference_has_the_same_level(name: str, one: str, other: str, level: str) -> None:
    assert changed(name, other, one).is_same_plan is (level not in ("operators", "conditions"))
    assert (changed(name, other, one).level is PlanLevel.BEHAVIOUR) is (level == "behaviour")


@pytest.mark.parametrize("name", sorted({name for name, *_ in STEPS}))
def test_a_plan_is_identical_to_itself(name: str) -> None:
    for plan in plans(name).values():
        found = difference(plan, plan)
        assert (found.level, found.changes) == (PlanLevel.IDENTICAL, ())
        assert found.fingerprints[0] == found.fingerprints[1]


@pytest.mark.parametrize(("name", "one", "other", "level"), STEPS)
def test_fingerprints_agree_with_the_level(name: str, one: str, other: str, level: str) -> None:
    mine, theirs = changed(name, one, other).fingerprints
    assert (mine.shape == theirs.shape) is (level != "operators")
    assert (mine.logic == theirs.logic) is (level not in ("operators", "conditions"))


@pytest.mark.parametrize(("name", "one", "other", "level"), STEPS)
def test_every_change_is_described_in_both_languages(name: str, one: str, other: str, level: str) -> None:
    found = changed(name, one, other)
    for language in Language:
        with use_language(language):
            reported = sentences(found)
        assert bool(reported) is bool(found.changes)
        assert not [text for text in reported if "None" in text or "#" in text]
    if level not in ("identical", "work"):
        assert found.changes


@pytest.mark.parametrize(
    ("step", "reported"),
    [
        (("incsortfull", "15", "16"), "Sort is now Incremental Sort"),
        (("selfjoin", "17", "18"), "removed: Seq Scan on small a"),
        (
            ("minmax", "16", "17"),
            "big no longer has the Index Cond big.id IS NOT NULL",
        ),
        (("hashaggdisk2", "17", "18"), "HashAgg Batches of HashAggregate was 5, now 1"),
        (("hashaggdisk2", "17", "18"), "HashAggregate no longer writes temporary files (it wrote 113 blocks)"),
        (("cte", "16", "17"), "Merge Join is now a Hash Join"),
        (("cte", "16", "17"), "x.id = y.id moved from Merge Cond of Merge Join to Hash Cond of Hash Join"),
    ],
)
def test_expected_changes_are_described(step: tuple[str, str, str], reported: str) -> None:
    assert reported in sentences(changed(*step))
