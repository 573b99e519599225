"""Caveats are data: a reason to trust a result less travels with the result, and nobody prints from the mathematics."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Caveat:
    """A reason to trust a result less, shown beside it."""

    slug: str
    """Stable name for programs, such as mixed-builds."""
    text: str
    """One sentence for people: what was seen, and on which arms."""
    arm: int | None = None
    """Index of the only contender it concerns; None when it concerns every verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Something in which the arms differ besides what the user asked to compare."""

    kind: str
    """setting, index or build, which has the encoding and collation of its database with it."""
    name: str
    """The setting's or property's own name."""
    values: tuple[str, ...]
    """One value for each arm, in the order of the arms; an empty text where the arm lacks it."""
    is_default: bool
    """True when each arm merely has its version's own default."""
