"""Changes of how the same node went: spills, sort methods, batches."""

from collections.abc import Iterator

from pgversus.plans.changes import Change, Kind
from pgversus.plans.levels import SPILLED, Examined
from pgversus.plans.matching import Matching


def fact_changes(one: Examined, other: Examined, matching: Matching) -> Iterator[Change]:
    """Of nodes with the same operator in both plans; what one of the two majors does not tell has not changed."""
    baseline, contender = one.plan, other.plan
    if baseline.is_measured and contender.is_measured and bool(baseline.jit_functions) != bool(contender.jit_functions):
        functions = baseline.jit_functions or 0, contender.jit_functions or 0
        yield Change(kind=Kind.JIT, node=contender.root.words, was=functions[0], now=functions[1])
    for place, there in matching.pairs:
        was, now = one.facts[place], other.facts[there]
        node = contender.nodes[there]
        if baseline.nodes[place].op != node.op:
            continue
        for name in was.keys() & now.keys():
            if was[name] == now[name]:
                continue
            if name == SPILLED:
                kind = Kind.SPILL_NEW if now[name] else Kind.SPILL_GONE
                blocks = baseline.nodes[place].measured.temp_blocks, node.measured.temp_blocks
                yield Change(kind=kind, node=node.words, was=blocks[0], now=blocks[1], places=(place, there))
            else:
                yield Change(
                    kind=Kind.FACT,
                    node=node.words,
                    name=name,
                    was=str(was[name]),
                    now=str(now[name]),
                    places=(place, there),
                )
