"""pgversus: is PostgreSQL A faster or slower than B for this workload, by how much, how certain, and why?

`run` measures a study, as the command of that name, and `load_results` reads what was measured. docs/python.md shows
both.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pgversus.api import StudyResults as StudyResults
    from pgversus.api import load_results as load_results
    from pgversus.api import run as run

__all__ = ["StudyResults", "load_results", "run"]


def __getattr__(name: str) -> Any:
    """Import on first use, so that `pgversus --help` does without what measuring needs."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pgversus import api  # noqa: PLC0415 - see above

    return getattr(api, name)
