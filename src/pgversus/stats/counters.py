"""How much counters grew between two readings."""

from collections.abc import Mapping


def difference(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """How much each counter grew between two readings, in the counter's unit.

    A counter that is missing on one side is left out, and so is one that went backwards: its statistics were reset.
    """
    return {name: after[name] - value for name, value in before.items() if name in after and after[name] >= value}
