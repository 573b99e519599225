"""How a context is measured, by load or as an operation: tried once, then by an apparatus for the engine."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from pgversus.engine.testbed import Apparatus
from pgversus.lab.measuring.arms import ArmServer
from pgversus.postgres import catalog
from pgversus.postgres.catalog import SettingValue
from pgversus.postgres.session import connect
from pgversus.records.plans import CapturedPlans
from pgversus.records.preparation import Preparation
from pgversus.study.design import Design

Settings = Mapping[str, SettingValue]
"""By name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRun:
    """What running the workload once on every arm has shown."""

    design: Design
    """Fitted to the workload; from here on it does not change."""
    settings: tuple[Settings, ...]
    """Of each arm, as a session of the workload has them."""
    writes: bool
    """Whether any arm's rows were changed."""
    connect_allowance_s: int = 0
    """Whole seconds by which each run of pgbench is longer, because its -T begins before its clients are connected."""
    connect_s: float = 0.0
    """Time that the slowest arm took to connect all clients."""
    longest_transaction_s: float
    """The slowest transaction of any arm, or the slowest operation."""
    plans: CapturedPlans | None = None
    """None for an operation, or where nobody asked for them."""
    not_explained: str = ""
    """Why there are none although they were asked for."""


class Harness(Protocol):
    """One context's workload on its servers."""

    def try_out(self) -> FirstRun:
        """Run it on every arm and throw the numbers away; WorkloadError when it cannot be run on one."""

    def apparatus(self, preparation: Preparation) -> Apparatus:
        """What the engine drives, as it was prepared."""


def session_settings(server: ArmServer) -> Settings:
    """Of a started server, as a session of the workload has them."""
    with connect(server.target, as_the_load=True) as connection:
        return catalog.session_settings(connection)
