"""Estimates of a dry run grow with the study, and are never below the minimum."""

from dataclasses import replace

from pgversus.study.comparison import CacheState
from pgversus.study.dataset import Dataset, SetupFile, Statistics
from pgversus.study.design import FIRST_LOOK, Design
from pgversus.study.needs import KEPT_COPIES_BYTES, disk_bytes, needs_of
from pgversus.study.servers import RunningServer
from pgversus.study.settings import Setting
from pgversus.study.study import Context, Study
from pgversus.study.workload import PgbenchWorkload, Script
from tests.builders import comparison, vacuum

WORKLOAD = PgbenchWorkload(scripts=(Script(name="q.sql", text="SELECT 1;"),))


def study(contexts: int = 3, design: Design | None = None, scale: int = 1) -> Study:
    requested = comparison(design=design)
    arms = tuple(replace(arm, dataset=Dataset(pgbench_scale=scale)) for arm in requested.arms)
    one = replace(requested, arms=arms)
    return Study(
        name="s",
        title="t",
        question="",
        contexts=tuple(Context(number=n, levels=(), comparison=one) for n in range(1, contexts + 1)),
        seed=1,
        budget_s=600.0,
    )


def test_data_is_loaded_once_per_server_and_dataset() -> None:
    assert needs_of(study(3)).snapshots == needs_of(study(300)).snapshots == 2
    assert needs_of(study(3)).disk_bytes == needs_of(study(300)).disk_bytes


def test_the_fewest_trials_are_those_of_the_first_look_or_of_all_fixed_blocks() -> None:
    assert needs_of(study(3)).least_trials == 3 * 2 * FIRST_LOOK
    assert needs_of(study(3, Design(fixed_blocks=7))).least_trials == 3 * 2 * 7


def test_larger_data_needs_more_disk_space_and_time() -> None:
    small, big = needs_of(study(scale=1)), needs_of(study(scale=500))
    # 15 MB per unit of scale, for two snapshots and two copies.
    assert big.disk_bytes - small.disk_bytes > 4 * 499 * 15e6
    assert big.preparation_s > small.preparation_s


def test_data_without_statistics_derive_from_loaded_data() -> None:
    whole = study(1, scale=100)
    comparison_of_versions = whole.contexts[0].comparison
    _, target = comparison_of_versions.arms
    without = replace(target, index=2, dataset=replace(target.dataset, statistics=Statistics.NONE))
    context = replace(
        whole.contexts[0], comparison=replace(comparison_of_versions, arms=(*comparison_of_versions.arms, without))
    )
    needs = needs_of(replace(whole, contexts=(context,)))
    assert needs.snapshots == 3
    # Loading at scale 100 takes 20 s.
    assert needs.preparation_s - needs_of(whole).preparation_s < 5


def test_the_budget_is_the_maximum_unless_blocks_are_fixed() -> None:
    assert needs_of(study()).most_s == 600.0
    assert needs_of(study(design=Design(fixed_blocks=5))).most_s is None


def test_each_cold_window_includes_a_start() -> None:
    warm = study()
    contexts = tuple(
        replace(context, comparison=replace(context.comparison, cache=CacheState.COLD)) for context in warm.contexts
    )
    assert needs_of(replace(warm, contexts=contexts)).least_s > 1.5 * needs_of(warm).least_s


def test_running_servers_need_no_disk_space() -> None:
    requested = study(1)
    arms = tuple(
        replace(arm, server=RunningServer(uri="postgresql://a")) for arm in requested.contexts[0].comparison.arms
    )
    one = replace(requested.contexts[0], comparison=replace(requested.contexts[0].comparison, arms=arms))
    assert needs_of(replace(requested, contexts=(one,))).disk_bytes == 0


def with_settings(requested: Study, name: str) -> Study:
    """Return the study with a different value of a setting in each context."""
    contexts = []
    for context in requested.contexts:
        setting = Setting(name=name, value=str(context.number))
        arms = tuple(replace(arm, settings=(setting,)) for arm in context.comparison.arms)
        contexts.append(replace(context, comparison=replace(context.comparison, arms=arms)))
    return replace(requested, contexts=tuple(contexts))


def test_large_copies_of_all_contexts_are_counted() -> None:
    # 15 MB per unit of scale, for two arms of nine more contexts.
    one, ten = (needs_of(with_settings(study(contexts, scale=500), "work_mem")) for contexts in (1, 10))
    assert (one.snapshots, ten.snapshots) == (2, 2)
    assert ten.disk_bytes - one.disk_bytes > 9 * 2 * 500 * 15e6
    assert needs_of(study(10, scale=500)).disk_bytes == needs_of(study(1, scale=500)).disk_bytes


def test_small_copies_of_other_servers_are_kept_up_to_a_limit() -> None:
    one, two, many, more = (
        needs_of(with_settings(study(contexts), "work_mem")).disk_bytes for contexts in (1, 2, 100, 200)
    )
    assert one < two < one + KEPT_COPIES_BYTES
    assert many == more == one + KEPT_COPIES_BYTES


def test_copies_of_an_operation_exist_one_by_one() -> None:
    (context,) = study(1, scale=20).contexts
    arms = tuple(replace(arm, workload=vacuum()) for arm in context.comparison.arms)
    found = disk_bytes([replace(context, comparison=replace(context.comparison, arms=arms))])
    # Two snapshots of 15 MB per unit of scale, and a copy, which grows by 1 GB of WAL.
    assert 3 * 20 * 15e6 + 1e9 < found < 3 * 20 * 15e6 + 2e9


def test_arms_with_different_data_settings_are_loaded_separately() -> None:
    apart = needs_of(with_settings(study(3), "default_statistics_target"))
    assert apart.snapshots == 3 * 2
    assert apart.disk_bytes > needs_of(with_settings(study(3), "work_mem")).disk_bytes


def test_settings_for_setup_files_only_matter_with_setup_files() -> None:
    requested = with_settings(study(3), "shared_preload_libraries")
    assert needs_of(requested).snapshots == 2
    files = Dataset(setup_files=(SetupFile(path="/s.sql", sha256=""),))
    contexts = []
    for context in requested.contexts:
        arms = tuple(replace(arm, dataset=files) for arm in context.comparison.arms)
        contexts.append(replace(context, comparison=replace(context.comparison, arms=arms)))
    assert needs_of(replace(requested, contexts=tuple(contexts))).snapshots == 3 * 2


def with_datasets(requested: Study, *datasets: Dataset) -> Study:
    """Return the study with a different dataset in each context."""
    contexts = []
    for context, dataset in zip(requested.contexts, datasets, strict=True):
        arms = tuple(replace(arm, dataset=dataset) for arm in context.comparison.arms)
        contexts.append(replace(context, comparison=replace(context.comparison, arms=arms)))
    return replace(requested, contexts=tuple(contexts))


def test_prepared_data_is_counted_in_addition_to_loaded_data() -> None:
    file = SetupFile(path="/p.sql", sha256="")
    loaded = Dataset(pgbench_scale=50)
    three, twenty = (replace(loaded, prepare=(file,), variables=(("share", share),)) for share in ("3", "20"))
    only_loaded = needs_of(with_datasets(study(2), loaded, loaded))
    one = needs_of(with_datasets(study(2), three, three))
    two = needs_of(with_datasets(study(2), three, twenty))
    assert [only_loaded.snapshots, one.snapshots, two.snapshots] == [1 * 2, 2 * 2, 3 * 2]
    # As many dead rows as live ones: 15 MB per unit of scale, twice, on two servers.
    assert two.disk_bytes - one.disk_bytes > 2 * 2 * 50 * 15e6
    assert one.disk_bytes - only_loaded.disk_bytes > 2 * 2 * 50 * 15e6
    assert only_loaded.preparation_s < one.preparation_s < two.preparation_s


def test_blocks_are_estimated_with_fitted_windows() -> None:
    closed = study(1, Design(fixed_blocks=4))
    (context,) = closed.contexts
    workload = replace(WORKLOAD, rate=1000.0)
    arms = tuple(replace(arm, workload=workload) for arm in context.comparison.arms)
    at_a_rate = replace(context, comparison=replace(context.comparison, arms=arms))
    # 1 s of load in slices, or 8 windows of 1 s, for two arms per block; a start takes half a second.
    assert 4 * 2 * 1.0 < needs_of(closed).least_s < 4 * 2 * 2.5
    assert 4 * 2 * 8.0 < needs_of(replace(closed, contexts=(at_a_rate,))).least_s < 4 * 2 * 12.0
