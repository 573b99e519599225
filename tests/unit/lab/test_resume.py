"""Results are resumed only by the same question; changes are reported."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import pytest

from pgversus.answers.read import state_so_far
from pgversus.errors import StoreError
from pgversus.lab.results_writer import ResultsWriter
from pgversus.lab.resume import changed_servers, check_same_study, loaded_before, without_secrets
from pgversus.lab.study_changes import changes_between
from pgversus.records.preparation import Preparation
from pgversus.store.folder import holds_results
from pgversus.store.reading import StoredContext, StoredStudy, read_results
from pgversus.study.comparison import CacheState, Comparison
from pgversus.study.dataset import Dataset, SetupFile, setup_file
from pgversus.study.servers import LocalPath, RunningServer
from pgversus.study.settings import Setting
from pgversus.study.study import Context, Study
from pgversus.study.workload import Operation, Step
from tests.builders import comparison, rate_block

FOLDER = Path("r")
PASSWORD = "secret"  # noqa: S105 - must not be found anywhere


def study(requested: Comparison | None = None, contexts: int = 2) -> Study:
    one = requested or comparison()
    return Study(
        name="s",
        title="t",
        question="q",
        contexts=tuple(Context(number=n, levels=(("load", f"c{n}"),), comparison=one) for n in range(1, contexts + 1)),
        seed=7,
        budget_s=60.0,
    )


def stored(requested: Study, *preparations: Preparation) -> StoredStudy:
    contexts = tuple(
        StoredContext(
            context=context,
            preparation=preparation,
            failure=None,
            blocks=(),
            plans=lambda: None,
            latencies=dict,
            is_checked=False,
        )
        for context, preparation in zip_longest(without_secrets(requested).contexts, preparations)
    )
    return StoredStudy(study=requested.metadata, facts={}, contexts=contexts, attempts={})


def prepared(*, writes: bool) -> Preparation:
    return Preparation(design=comparison().design, arms=(), differences=(), writes=writes, connect_allowance_s=0)


def changed(change: Callable[[Comparison], Comparison]) -> str:
    with pytest.raises(StoreError) as caught:
        check_same_study(stored(study()), study(change(comparison())), FOLDER)
    assert caught.value.slug == "store-other-study"
    return caught.value.found


def test_the_same_study_is_resumed_even_with_a_larger_budget() -> None:
    check_same_study(stored(study()), study(), FOLDER)
    more = comparison(design=replace(comparison().design, budget_s=9999.0))
    check_same_study(stored(study()), replace(study(more), budget_s=9999.0), FOLDER)


def with_setup(path: str, sha256: str) -> Study:
    requested = comparison()
    data = Dataset(setup_files=(SetupFile(path=path, sha256=sha256),))
    return study(replace(requested, arms=tuple(replace(arm, dataset=data) for arm in requested.arms)))


def test_a_setup_file_is_identified_regardless_of_its_path() -> None:
    check_same_study(stored(with_setup("/here/a.sql", "0" * 64)), with_setup("/there/x/../a.sql", "0" * 64), FOLDER)
    with pytest.raises(StoreError) as caught:
        check_same_study(stored(with_setup("/here/a.sql", "0" * 64)), with_setup("/here/a.sql", "1" * 64), FOLDER)
    assert caught.value.found.startswith("dataset.setup.1.sha256: 0000")


def test_a_bin_directory_elsewhere_is_a_different_one() -> None:
    def moved(requested: Comparison) -> Comparison:
        return replace(requested, arms=(requested.arms[0], replace(requested.arms[1], server=LocalPath(path="/there"))))

    assert changed(moved).endswith("server.path of 17.8: nothing, now /there")


def test_changes_are_reported_once_with_both_values_in_terms_of_the_study_file() -> None:
    design = comparison().design
    margin = changed(lambda requested: replace(requested, design=replace(design, margin=0.05)))
    assert margin == "margin: 0.02, now 0.05"
    precision = changed(lambda requested: replace(requested, design=replace(design, precision=0.03)))
    assert precision == "precision: nothing, now 0.03"
    both = changed(lambda requested: replace(requested, cache=CacheState.COLD, design=replace(design, fixed_blocks=9)))
    assert both == "cache: warm, now cold; blocks: nothing, now 9"
    rounds = changed(lambda requested: replace(requested, design=replace(design, rounds=3, rounds_are_given=True)))
    assert rounds == f"windows: {design.rounds}, now 3"


def test_changes_on_some_arms_name_these_arms() -> None:
    setting = Setting(name="jit", value="off")
    jit = changed(
        lambda requested: replace(requested, arms=(requested.arms[0], replace(requested.arms[1], settings=(setting,))))
    )
    assert jit == "settings.jit of 17.8: nothing, now off"
    scaled = Dataset(pgbench_scale=7)
    everywhere = changed(
        lambda requested: replace(requested, arms=tuple(replace(arm, dataset=scaled) for arm in requested.arms))
    )
    assert everywhere == "dataset.scale: 1, now 7"
    label = changed(
        lambda requested: replace(requested, arms=(requested.arms[0], replace(requested.arms[1], label="18.1")))
    )
    assert label == "arms: 16.12, 17.8, now 16.12, 18.1"


def test_changes_in_some_contexts_name_these_contexts() -> None:
    def found(number_changed: int) -> str:
        requested = study(contexts=3)
        cold = replace(comparison(), cache=CacheState.COLD)
        contexts = (
            replace(one, comparison=cold) if one.number <= number_changed else one for one in requested.contexts
        )
        with pytest.raises(StoreError) as caught:
            check_same_study(stored(requested), replace(requested, contexts=tuple(contexts)), FOLDER)
        return caught.value.found

    assert found(1) == "cache: warm, now cold (load=c1)"
    assert found(2) == "cache: warm, now cold (in 2 contexts of 3)"
    assert found(3) == "cache: warm, now cold"


def test_different_contexts_seed_or_order_make_a_different_study() -> None:
    turned = replace(study(), contexts=tuple(reversed(study().contexts)))
    for other, words in (
        (study(contexts=3), "2 contexts, now 3; added: load=c3"),
        (study(contexts=1), "2 contexts, now 1; removed: load=c2"),
        (study(contexts=9), "2 contexts, now 9; added: load=c3, load=c4, load=c5 and 4 more"),
        (replace(study(), seed=8), "seed 7, now 8"),
        (turned, "contexts in a different order"),
    ):
        with pytest.raises(StoreError) as caught:
            check_same_study(stored(study()), other, FOLDER)
        assert caught.value.found == words


def test_long_lists_of_changes_are_shortened_and_counted() -> None:
    requested = comparison()
    settings = tuple(Setting(name=f"s{number}", value="1") for number in range(20))
    arms = tuple(replace(arm, settings=settings) for arm in requested.arms)
    assert changed(lambda _: replace(requested, arms=arms)).endswith("settings.s7: nothing, now 1; and 12 more")


def test_passwords_are_neither_stored_nor_needed_to_resume() -> None:
    requested = comparison()
    uri = RunningServer(uri=f"postgresql://me:{PASSWORD}@db.example/app")
    running = study(replace(requested, arms=(requested.arms[0], replace(requested.arms[1], server=uri))))
    assert PASSWORD not in repr(without_secrets(running))
    check_same_study(stored(running), running, FOLDER)


def test_a_context_state_resumes_with_the_budget_of_the_last_run() -> None:
    (first, _) = stored(study(), prepared(writes=False)).contexts
    state = state_so_far(first.context, first, verdicts=2, budget_s=9999.0)
    assert state.comparison.design.budget_s == 9999.0
    assert state.comparison.design == replace(comparison().design, budget_s=9999.0)


def on_running_servers(requested: Study, servers: Sequence[RunningServer]) -> Study:
    """The same study with the second arm of each context on one of these servers."""
    contexts = []
    for context, server in zip(requested.contexts, servers, strict=True):
        (first, second) = context.comparison.arms
        arms = (first, replace(second, server=server))
        contexts.append(replace(context, comparison=replace(context.comparison, arms=arms)))
    return replace(requested, contexts=tuple(contexts))


def test_external_servers_loaded_or_changed_by_an_earlier_run_are_known_with_passwords() -> None:
    requested = study(contexts=3)
    uris = [RunningServer(uri=f"postgresql://me:{PASSWORD}@db.example/app{number}") for number in range(3)]
    running = on_running_servers(requested, uris)
    earlier = stored(running, prepared(writes=False), prepared(writes=True))
    assert loaded_before(earlier, running) == set(uris[:2])
    assert changed_servers(earlier, running) == {uris[1]}
    block = rate_block(1, 100.0, 100.0)
    trials = {arm: trial._replace(counters={"tuples_updated": 1.0}) for arm, trial in block.trials.items()}
    first = replace(earlier.contexts[0], blocks=(block._replace(trials=trials),))
    assert changed_servers(replace(earlier, contexts=(first, *earlier.contexts[1:])), running) == set(uris[:2])


def test_a_load_possibly_tried_when_the_run_ended_may_have_changed_the_data() -> None:
    requested = study(contexts=2)
    uri = RunningServer(uri="postgresql://db.example/app")
    running = on_running_servers(requested, [uri, uri])
    reads = prepared(writes=False)
    assert changed_servers(stored(running, reads), running) == {uri}
    assert changed_servers(stored(running, reads, reads), running) == set()


def test_a_server_loaded_before_the_first_preparation_ended_is_known(tmp_path: Path) -> None:
    uris = [RunningServer(uri=f"postgresql://me:{PASSWORD}@db.example/app{number}") for number in range(3)]
    running = on_running_servers(study(contexts=3), uris)
    for server in uris[:2]:
        earlier = read_results(tmp_path) if holds_results(tmp_path) else None
        with ExitStack() as stack:
            ResultsWriter(running, tmp_path, earlier, {}, begin=lambda: None, stack=stack).keep_loaded(server)
    earlier = read_results(tmp_path)
    assert loaded_before(earlier, running) == set(uris[:2])
    # Its load may have been tried.
    assert changed_servers(earlier, running) == set(uris[:2])
    assert PASSWORD not in repr(earlier)


def with_commands(password: str, *, rest: str) -> Study:
    """A study with a password and another text in every place that is compared."""
    sql = f"ALTER ROLE u PASSWORD '{password}'; {rest}"
    steps = (
        Step(name="a", sql=sql),
        Step(name="b", program=("psql", f"postgresql://u:{password}@h", "-c", rest)),
        Step(name="c", program=("sh", "-c", f"PGPASSWORD='{password}' psql -c '{rest}'")),
        Step(name="d", program=("psql", f"host=h password={password} dbname={rest}")),
    )
    data = Dataset(
        setup_files=(setup_file("/a.sql", sql.encode()), setup_file("s inline", sql.encode(), text=sql)),
        variables=(("pw_secret", password),),
    )
    settings = (
        Setting(name="primary_conninfo", value=f"host=h password={password} application_name={rest}"),
        Setting(name="archive_command", value=f"PGPASSWORD={password} {rest}"),
    )
    requested = comparison(workload=Operation(name="o", steps=steps), dataset=data)
    return study(replace(requested, arms=tuple(replace(arm, settings=settings) for arm in requested.arms)))


def kept_by(requested: Study, folder: Path) -> StoredStudy:
    with ExitStack() as stack:
        ResultsWriter(requested, folder, None, {}, begin=lambda: None, stack=stack).keep_fact("x", 1)
    return read_results(folder)


def test_a_changed_password_keeps_the_study_and_a_changed_command_does_not(tmp_path: Path) -> None:
    earlier = kept_by(with_commands("Geheim99", rest="one"), tmp_path)
    check_same_study(earlier, with_commands("GanzGeheim7", rest="one"), FOLDER)
    with pytest.raises(StoreError) as caught:
        check_same_study(earlier, with_commands("Geheim99", rest="two"), FOLDER)
    assert "Geheim99" not in caught.value.found


def test_texts_that_contain_a_password_are_still_compared(tmp_path: Path) -> None:
    before, now = (without_secrets(with_commands("Geheim99", rest=rest)) for rest in ("one", "two"))
    changes = " ".join(changes_between(before.contexts, now.contexts))
    for changed in (
        *(
            "workload.steps.1.sql",
            "workload.steps.2.program.4",
            "workload.steps.3.program.3",
            "workload.steps.4.program.2",
        ),
        *("dataset.setup.1.sha256", "dataset.setup.2.sha256", "dataset.setup.2.text"),
        *("settings.primary_conninfo", "settings.archive_command"),
    ):
        assert f"{changed}: " in changes
    assert kept_by(with_commands("Geheim99", rest="one"), tmp_path).contexts[0].context == before.contexts[0]
