"""The check of claims about plans notices wrong rules."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from pgversus.plans import changes, operators
from pgversus.plans.explain import read_plans
from pgversus.plans.plan import Plan, PlanNode
from tests.claims import check_claims
from tests.fuzz.claims import CLAIMS, INDEX_KEYS
from tests.fuzz.target import input_of

INPUTS = 600


@cache
def pairs() -> list[tuple[Plan, ...]]:
    return [tuple(read_plans(text, "made up")[0] for text in input_of(CLAIMS, seed)) for seed in range(INPUTS)]


def false_claims() -> Iterator[str]:
    for baseline, contender in pairs():
        try:
            check_claims(baseline, contender, INDEX_KEYS)
        except AssertionError as error:
            yield str(error)


def test_no_sentence_about_made_up_plans_is_false() -> None:
    assert list(false_claims()) == []


@pytest.mark.parametrize(
    ("place", "name", "wrong", "claim"),
    [
        (Plan, "read_to_the_end", lambda plan: [True] * len(plan.nodes), "estimate"),
        (Plan, "in_workers", lambda plan: [False] * len(plan.nodes), ""),
        (PlanNode, "own_alias", property(lambda _: ""), ""),
        (operators, "_relations", lambda _: set(), "relation"),
        (changes._PlacedCondition, "is_same_as", lambda *_: True, "condition moved"),
    ],
)
def test_a_wrong_rule_leads_to_false_claims(
    monkeypatch: pytest.MonkeyPatch, place: Any, name: str, wrong: object, claim: str
) -> None:
    monkeypatch.setattr(place, name, wrong)
    found = list(false_claims())
    assert found
    assert all(text.startswith(claim) for text in found)
