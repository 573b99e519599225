"""Many hosts that measure one study at the same time, each on simulated servers with a clock of its own."""

from collections import Counter
from collections.abc import Sequence
from itertools import count

import pytest

from benchmarks.simulated_fleet import SimulatedFleet
from pgversus.engine.context_state import ContextState
from pgversus.engine.progress import Progress
from pgversus.engine.scheduler import run_contexts
from pgversus.errors import WorkloadError
from pgversus.records.trials import Block
from pgversus.study.design import StopReason
from tests.unit.engine.test_scheduler import Pretended, PretendedSite, study


class ManyHosts(SimulatedFleet):
    """Simulated hosts on pretended servers."""

    def __init__(self, sites: Sequence[PretendedSite], *, lost_after: int | None = None) -> None:
        """lost_after: number of events after which the first host is lost for good, in the middle of its task."""
        self.sites = {f"db{number}": site for number, site in enumerate(sites, 1)}
        events = count()
        super().__init__(
            {name: (site, site.host.clock) for name, site in self.sites.items()},
            is_lost=lambda name: lost_after is not None and next(events) >= lost_after and name == "db1",
            returns=False,
        )


def sites(number: int, tps: float = 101.0, *, shares: bool = False) -> list[PretendedSite]:
    """Every host is slower to stop its servers than the one before."""
    return [PretendedSite(Pretended({0: 100.0, 1: tps}, stop_s=7.0 * place), shares=shares) for place in range(number)]


def run(
    states: list[ContextState], hosts: ManyHosts, budget_s: float = 1e6
) -> tuple[StopReason, list[tuple[int, int]]]:
    kept: list[tuple[int, int]] = []

    def keep(state: ContextState, block: Block) -> None:
        kept.append((state.context.number, block.number))

    stopped = run_contexts(
        states,
        hosts,
        seed=3,
        budget_s=budget_s,
        progress=Progress(),
        keep=keep,
        keep_preparation=lambda _state: None,
    )
    return stopped, kept


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize("contexts", [1, 2, 7])
def test_every_block_is_measured_once_and_stored_in_order(contexts: int, *, shares: bool) -> None:
    hosts = ManyHosts(sites(3, shares=shares))
    stopped, kept = run(study(contexts, fixed_blocks=6), hosts)
    assert stopped is StopReason.BLOCKS
    assert sorted(kept) == [(context, number) for context in range(1, contexts + 1) for number in range(1, 7)]
    for context in range(1, contexts + 1):
        assert [number for one, number in kept if one == context] == list(range(1, 7))
    assert max(Counter((context, number) for _, context, number in hosts.measured).values()) == 1
    assert {host for host, *_ in hosts.measured} == {"db1", "db2", "db3"}


def test_a_host_measures_one_task_at_a_time_and_all_hosts_work() -> None:
    hosts = ManyHosts(sites(3))
    run(study(4, fixed_blocks=9), hosts)
    blocks = Counter(host for host, *_ in hosts.measured)
    assert min(blocks.values()) >= 8
    journals = [site.host.journal for site in hosts.sites.values()]
    assert all(
        [action for action, _ in journal].count("stop") == blocks[host]
        for host, journal in zip(hosts.sites, journals, strict=True)
    )


@pytest.mark.parametrize("after", range(1, 40, 3))
def test_blocks_of_a_lost_host_are_measured_by_others(after: int) -> None:
    hosts = ManyHosts(sites(3, shares=True), lost_after=after)
    states = study(3, fixed_blocks=6)
    stopped, kept = run(states, hosts)
    assert stopped is StopReason.BLOCKS
    assert sorted(kept) == [(context, number) for context in (1, 2, 3) for number in range(1, 7)]
    assert hosts.losses == 1
    assert [len(state.blocks) for state in states] == [6, 6, 6]


def test_looks_do_not_depend_on_which_host_is_faster() -> None:
    verdicts = []
    for order in (1, -1):
        hosts = ManyHosts(sites(3, tps=150.0)[::order])
        (state,) = study(1)
        run([state], hosts)
        verdicts.append((state.stopped, len(state.blocks)))
    assert verdicts == [(StopReason.DECIDED, 4)] * 2


def test_no_more_blocks_are_measured_at_once_than_a_context_can_need() -> None:
    hosts = ManyHosts(sites(10))
    run(study(1, fixed_blocks=4), hosts)
    assert len(hosts.measured) == 4


def test_blocks_that_are_no_longer_needed_are_not_stored() -> None:
    hosts = ManyHosts(sites(10, tps=150.0))
    (state,) = study(1)
    _, kept = run([state], hosts)
    assert [number for _, number in kept] == [1, 2, 3, 4]
    assert (state.stopped, len(state.blocks)) == (StopReason.DECIDED, 4)


def test_a_decided_arm_is_left_out_of_later_blocks_that_have_measured_it() -> None:
    several = [PretendedSite(Pretended({0: 100.0, 1: 150.0, 2: 100.5})) for _ in range(4)]
    hosts = ManyHosts(several)
    (state,) = study(1, 3, margin=0.0001, max_blocks=12)
    run([state], hosts)
    taking_part = [sorted(block.trials) for block in state.blocks]
    assert taking_part[:4] == [[0, 1, 2]] * 4
    assert taking_part[4:]
    assert all(arms == [0, 2] for arms in taking_part[4:])
    assert state.interim_results[1].blocks == 4


def test_windows_fitted_by_one_host_apply_to_all() -> None:
    hosts = ManyHosts(sites(3))
    (state,) = study(1, fixed_blocks=9)
    run([state], hosts)
    assert all(site.prepared for site in hosts.sites.values())
    fitting, *others = (site.given for site in hosts.sites.values())
    assert fitting == [None]
    assert all(given[-1] is state.preparation for given in others)


def test_a_context_that_fails_on_one_host_fails() -> None:
    hosts = ManyHosts(sites(2))
    for site in hosts.sites.values():
        site.unpreparable = frozenset({2})
    states = study(2, fixed_blocks=3)
    run(states, hosts)
    assert states[1].failure
    assert len(states[0].blocks) == 3


def test_a_single_context_that_cannot_be_prepared_is_an_error() -> None:
    hosts = ManyHosts(sites(2))
    for site in hosts.sites.values():
        site.unpreparable = frozenset({1})
    with pytest.raises(WorkloadError):
        run(study(1), hosts)
    assert hosts.free() == ["db1", "db2"]


def test_blocks_that_are_being_measured_count_against_the_budget() -> None:
    hosts = ManyHosts(sites(3, tps=100.0))
    states = study(1, margin=0.0001, max_blocks=50)
    stopped, _ = run(states, hosts, budget_s=200.0)
    assert stopped is StopReason.BUDGET
    walls = [block.wall_s for block in states[0].blocks]
    assert sum(walls) <= 200.0 + max(walls)
