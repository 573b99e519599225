"""What every report shows: one object, computed once; a renderer adds nothing to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pgversus.stats.analysis import Analysis
from pgversus.stats.confidence import LookRule
from pgversus.study.caveats import Caveat, Difference
from pgversus.study.comparison import Comparison
from pgversus.study.design import StopReason

RUNNING_SERVER = "running server"
"""The origin of an arm that somebody else runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmFacts:
    """What an arm turned out to be."""

    version: str
    """server_version as the server says it."""
    origin: str
    """wheel, zonky, bin directory, or running server."""
    compiler: str
    flags: str
    """CFLAGS; empty where the server does not tell."""
    sha256: str | None
    """Of the artifact that the build came from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The end of a comparison."""

    comparison: Comparison
    """With the design that was run, windows fitted."""
    arms: tuple[ArmFacts, ...]
    analysis: Analysis
    rule: LookRule
    caveats: tuple[Caveat, ...]
    differences: tuple[Difference, ...]
    stopped: StopReason
    failed_trials: int
    blocks_run: int
    wall_s: float
    """Of all blocks, with restarts and warm-up."""
    client: str
    """The pgbench that put the load on."""
    host: Mapping[str, Any]
    results: str
    """The results folder."""
