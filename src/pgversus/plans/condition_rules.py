"""Changes of conditions and keys, in nodes that are in both plans."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from pgversus.plans.changes import Change, Kind
from pgversus.plans.matching import Matching
from pgversus.plans.plan import Plan, PlanNode


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """One condition where it is held."""

    text: str
    heading: str
    place: int
    node: PlanNode

    @property
    def words(self) -> str:
        return f"{self.heading} of {self.node.words}"


def condition_changes(baseline: Plan, contender: Plan, matching: Matching) -> Iterator[Change]:
    """Conditions that moved, went and came, then keys."""
    yield from _conditions(baseline, contender, matching)
    for place, there in matching.pairs:
        yield from _keys(baseline.nodes[place], contender.nodes[there], (place, there))


def _conditions(baseline: Plan, contender: Plan, matching: Matching) -> Iterator[Change]:
    there = dict(matching.pairs)
    held, held_there = _all(baseline), _all(contender)
    kept = Counter((there.get(one.place), one.heading, one.text) for one in held)
    kept_there = Counter((one.place, one.heading, one.text) for one in held_there)
    gone = [one for one in held if (there.get(one.place), one.heading, one.text) not in kept_there]
    new: dict[str, list[_Held]] = {}
    for one in held_there:
        if (one.place, one.heading, one.text) not in kept:
            new.setdefault(one.text, []).append(one)
    for one in gone:
        if moved := new.get(one.text):
            now = moved.pop(0)
            yield Change(
                kind=Kind.CONDITION_MOVED,
                node=now.node.words,
                name=one.text,
                was=one.words,
                now=now.words,
                places=(one.place, now.place),
            )
        # Those of nodes that are gone are told with them.
        elif one.place in there:
            yield Change(
                kind=Kind.CONDITION_GONE,
                node=one.node.words,
                name=one.heading,
                was=one.text,
                places=(one.place, there[one.place]),
            )
    back = {now: was for was, now in matching.pairs}
    for one in (one for left in new.values() for one in left):
        if one.place in back:
            yield Change(
                kind=Kind.CONDITION_NEW,
                node=one.node.words,
                name=one.heading,
                now=one.text,
                places=(back[one.place], one.place),
            )


def _all(plan: Plan) -> list[_Held]:
    return [
        _Held(text=text, heading=heading, place=place, node=node)
        for place, node in enumerate(plan.nodes)
        for heading, texts in node.conditions.items()
        for text in texts
    ]


def _keys(was: PlanNode, now: PlanNode, places: tuple[int, int]) -> Iterator[Change]:
    for heading in dict.fromkeys((*was.keys, *now.keys)):
        before, after = was.keys.get(heading, ()), now.keys.get(heading, ())
        if before != after:
            kind = Kind.KEY_ORDER if sorted(before) == sorted(after) else Kind.KEYS
            yield Change(
                kind=kind,
                node=now.words,
                name=heading,
                was=", ".join(before),
                now=", ".join(after),
                places=places,
            )
