"""Numbers in sentences about plans: thousands apart, as few digits as tell what is meant."""

EXACT = 1.05
"""Up to so many times off, an estimate is right."""
_SMALL = 10.0


def number(value: object) -> str:
    """`100 000`, `25.5`; text as it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if value < _SMALL and value != int(value):
        return f"{value:.3g}"
    return f"{value:,.0f}".replace(",", " ")
