from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.engine.block_runner import BlockSchedule, block_schedule

SEED = st.integers(0, 2**32)
ARMS = st.lists(st.integers(0, 20), min_size=2, max_size=6, unique=True)


def schedule(seed: int, arms: list[int], rounds: int) -> BlockSchedule:
    return block_schedule(np.random.default_rng(seed), arms, rounds)


@given(SEED, ARMS, st.integers(1, 12))
def test_every_arm_runs_once_in_each_round(seed: int, arms: list[int], rounds: int) -> None:
    plan = schedule(seed, arms, rounds)
    assert len(plan.rounds) == rounds
    assert all(sorted(order) == sorted(arms) for order in plan.rounds)


@given(SEED, ARMS, st.integers(1, 6))
def test_each_pair_of_rounds_is_mirrored(seed: int, arms: list[int], pairs: int) -> None:
    plan = schedule(seed, arms, 2 * pairs)
    for forward, backward in zip(plan.rounds[::2], plan.rounds[1::2], strict=True):
        assert backward == tuple(reversed(forward))


@given(SEED, ARMS, st.integers(1, 6))
def test_a_linear_drift_is_the_same_for_every_arm(seed: int, arms: list[int], pairs: int) -> None:
    positions = [arm for order in schedule(seed, arms, 2 * pairs).rounds for arm in order]
    sums: Counter[int] = Counter()
    for position, arm in enumerate(positions):
        sums[arm] += position
    assert len(set(sums.values())) == 1


@given(SEED, ARMS, st.integers(1, 12))
def test_the_start_order_is_a_permutation_of_the_arms(seed: int, arms: list[int], rounds: int) -> None:
    assert sorted(schedule(seed, arms, rounds).start_order) == sorted(arms)


@given(SEED, ARMS, st.integers(1, 12))
def test_the_same_generator_gives_the_same_order(seed: int, arms: list[int], rounds: int) -> None:
    assert schedule(seed, arms, rounds) == schedule(seed, arms, rounds)


@given(SEED, ARMS, st.integers(1, 12))
def test_each_round_has_a_seed_that_pgbench_accepts(seed: int, arms: list[int], rounds: int) -> None:
    seeds = schedule(seed, arms, rounds).seeds
    assert len(seeds) == rounds
    assert all(1 <= value < 2**31 - 1 for value in seeds)


def test_successive_blocks_of_one_generator_have_different_seeds() -> None:
    rng = np.random.default_rng(1)
    seeds = [seed for _ in range(20) for seed in block_schedule(rng, [0, 1], 4).seeds]
    assert len(set(seeds)) == 80


@pytest.mark.parametrize("arms", [[0, 1], [0, 1, 2]])
def test_the_first_arm_is_random(arms: list[int]) -> None:
    rng = np.random.default_rng(3)
    plans = [block_schedule(rng, arms, 2) for _ in range(600)]
    for first in (Counter(plan.rounds[0][0] for plan in plans), Counter(plan.start_order[0] for plan in plans)):
        assert set(first) == set(arms)
        assert all(abs(count - 600 / len(arms)) < 75 for count in first.values())


@pytest.mark.parametrize(
    ("rounds", "per_session", "sizes"),
    [
        (50, 24, [26, 24]),
        (56, 28, [28, 28]),
        (10, 10, [10]),
        (4, 24, [4]),
        (8, 1, [1] * 8),
        (6, 4, [4, 2]),
        (1, 1, [1]),
    ],
)
def test_sessions_hold_whole_quads_and_every_round_once(rounds: int, per_session: int, sizes: list[int]) -> None:
    plan = schedule(1, [0, 1], rounds)
    sessions = list(plan.sessions(per_session))
    assert [len(session.rounds) for session in sessions] == sizes
    assert [one for session in sessions for one in session.rounds] == list(plan.rounds)
    assert [session.first_round for session in sessions] == [1 + sum(sizes[:n]) for n in range(len(sizes))]
