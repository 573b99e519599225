"""Which contexts may share a start of the servers."""

from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pgversus.engine.progress import Progress
from pgversus.lab.testbed import PostgresTestbed
from pgversus.study.comparison import CacheState, Comparison
from pgversus.study.dataset import Dataset
from pgversus.study.study import Context
from pgversus.study.workload import PgbenchWorkload, Script
from tests.builders import comparison, vacuum

READS = comparison(workload=PgbenchWorkload(scripts=(Script(name="one.sql", text="SELECT 1;"),)))
OTHER = comparison(workload=PgbenchWorkload(scripts=(Script(name="two.sql", text="SELECT 2;"),)))


def new_testbed() -> PostgresTestbed:
    resources = SimpleNamespace(builds={}, directory=None, common_settings={})
    shared = SimpleNamespace(resources=resources, snapshots=None, progress=Progress())
    return PostgresTestbed(cast("Any", None), cast("Any", shared), ExitStack())


def contexts(one: Comparison, other: Comparison) -> tuple[Context, Context]:
    return Context(number=1, levels=(), comparison=one), Context(number=2, levels=(), comparison=other)


@pytest.mark.parametrize(
    ("one", "other", "shares"),
    [
        (READS, OTHER, True),
        (READS, replace(OTHER, cache=CacheState.COLD), False),
        (READS, comparison(labels=("16.12", "17.8", "18"), workload=OTHER.workload), False),
        (READS, comparison(workload=OTHER.workload, dataset=Dataset(pgbench_scale=2)), False),
        (comparison(workload=vacuum()), comparison(workload=vacuum()), False),
    ],
)
def test_contexts_share_a_start_if_they_read_with_warm_caches_on_the_same_servers(
    one: Comparison, other: Comparison, *, shares: bool
) -> None:
    assert new_testbed().can_share_start(*contexts(one, other)) is shares


def test_a_context_that_is_known_to_write_shares_no_start() -> None:
    requested = new_testbed()
    requested._ready[2] = cast("Any", SimpleNamespace(writes=True))
    assert not requested.can_share_start(*contexts(READS, OTHER))
