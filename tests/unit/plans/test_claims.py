"""The check of claims about plans notices wrong rules."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from pgversus.plans import amounts, changes, operators
from pgversus.plans.changes import ChangeKind
from pgversus.plans.difference import difference
from pgversus.plans.plan import Plan, PlanNode
from tests.claims import _TRUTHS, check_claims
from tests.fuzz.claims import CLAIMS, INDEX_KEYS, plans_in
from tests.fuzz.target import input_of
from tests.unit.plans.raw import plan, scan

INPUTS = 600


@cache
def pairs() -> list[tuple[Plan, Plan]]:
    return [plans_in(input_of(CLAIMS, seed)) for seed in range(INPUTS)]


def false_claims() -> Iterator[str]:
    for baseline, contender in pairs():
        try:
            check_claims(baseline, contender, INDEX_KEYS, parameters=1)
        except AssertionError as error:
            yield str(error)


def test_no_sentence_about_made_up_plans_is_false() -> None:
    assert list(false_claims()) == []


def test_every_kind_of_change_is_checked() -> None:
    assert set(_TRUTHS) == set(ChangeKind)


def test_a_claim_about_blocks_of_different_sizes_is_checked() -> None:
    small, large = (replace(plan(scan("t", Shared_Hit_Blocks=1000)), block_bytes=size) for size in (8192, 16384))
    assert [change.kind for change in difference(small, large).changes] == [ChangeKind.BYTES]
    check_claims(small, large, {})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "name", "wrong", "claim"),
    [
        (Plan, "read_to_the_end", lambda plan: [True] * len(plan.nodes), "estimate"),
        (Plan, "in_workers", lambda plan: [False] * len(plan.nodes), ""),
        (PlanNode, "own_alias", property(lambda _: ""), ""),
        (operators, "_relations", lambda _, __: set(), "relation"),
        (amounts, "_memory", lambda *_: [(ChangeKind.MEMORY, 0.0, 1e9)], "memory"),
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
