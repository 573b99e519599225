"""Parts of a study: one if the data fits, otherwise as few as possible, and none lost."""

from dataclasses import replace
from itertools import chain, pairwise

from hypothesis import given
from hypothesis import strategies as st

from pgversus.study.dataset import Dataset, SetupFile
from pgversus.study.needs import MOST_AT_ONCE_BYTES, disk_bytes, needs_of, parts_of
from pgversus.study.study import Context, Study
from pgversus.study.workload import Operation, Step
from tests.builders import comparison

PREPARE = (SetupFile(path="dirty.sql", sha256="0" * 64),)
VACUUM = Operation(name="VACUUM", steps=(Step(name="VACUUM", sql="VACUUM"),))


def contexts(*data: tuple[int, str]) -> list[Context]:
    """Return contexts of operations on two servers, by scale and by the variable of `prepare`."""
    found = []
    for number, (scale, dead) in enumerate(data, 1):
        requested = comparison()
        dataset = Dataset(pgbench_scale=scale, prepare=PREPARE, variables=(("dead", dead),))
        arms = tuple(replace(arm, dataset=dataset, workload=VACUUM) for arm in requested.arms)
        found.append(Context(number=number, levels=(("n", str(number)),), comparison=replace(requested, arms=arms)))
    return found


def numbers(parts: list[list[Context]]) -> list[list[int]]:
    return [[context.number for context in part] for part in parts]


def test_contexts_with_little_data_form_one_part() -> None:
    assert numbers(parts_of(contexts((10, "3"), (10, "20"), (10, "50"), (1, "3")))) == [[1, 2, 3, 4]]
    assert parts_of([]) == []


def test_contexts_that_share_data_stay_together_and_large_data_is_split() -> None:
    requested = contexts((500, "3"), (500, "70"), (500, "3"), (10, "3"), (500, "70"), (10, "70"))
    assert numbers(parts_of(requested)) == [[1, 3], [2, 5], [4, 6]]


DATA = st.lists(st.tuples(st.sampled_from([1, 10, 100, 500, 2000]), st.sampled_from(["3", "20", "70"])), max_size=30)


@given(DATA, st.floats(1e6, 1e12))
def test_every_context_is_in_one_part_and_parts_respect_the_limit(
    data: list[tuple[int, str]], most_bytes: float
) -> None:
    requested = contexts(*data)
    parts = parts_of(requested, most_bytes)
    assert sorted(chain.from_iterable(numbers(parts))) == [context.number for context in requested]
    for part in parts:
        is_single = len({context.comparison.arms[0].dataset for context in part}) == 1
        assert is_single or disk_bytes(part) <= most_bytes
    # The next part would not fit into the previous one.
    for part, following in pairwise(parts):
        assert disk_bytes([*part, *following]) > most_bytes


def test_a_study_needs_the_disk_space_of_its_largest_part() -> None:
    requested = contexts(*((500, str(dead)) for dead in range(10)))
    study = Study(name="s", title="t", question="", contexts=tuple(requested), seed=1, budget_s=600.0)
    needs = needs_of(study)
    assert disk_bytes(requested) > 5 * disk_bytes(requested[:1]) > MOST_AT_ONCE_BYTES
    assert (needs.parts, needs.disk_bytes) == (10, disk_bytes(requested[:1]))
