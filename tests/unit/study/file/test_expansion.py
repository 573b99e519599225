import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgversus.engine.block_runner import block_schedule
from pgversus.errors import StudyFileError
from pgversus.study.file.document import as_key, as_toml
from pgversus.study.workload import PgbenchWorkload
from tests.unit.study.file.reading import SHORT, study

NAMES = ["work_mem", "jit", "bench.delay", "geqo"]
VARIABLES = ["dead", "rows"]
SERVERS = ["16", "17", "17.8", "zonky:17.8", "./bin", "postgresql:///db"]


@st.composite
def study_texts(draw: st.DrawFn) -> str:
    """Files with a few of each kind of table, most of them valid."""
    workloads = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True))
    datasets = draw(st.lists(st.sampled_from("xyz"), max_size=2, unique=True))
    loads = draw(st.lists(st.sampled_from(["c1", "c2", "c3"]), max_size=3, unique=True))
    factors: dict[str, list[object]] = {"server": draw(st.lists(st.sampled_from(SERVERS), min_size=1, max_size=4))}
    for kind, names in (("workload", workloads), ("dataset", datasets), ("load", loads)):
        is_given = draw(st.booleans())
        if names and (is_given or kind == "dataset"):
            factors[kind] = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    if draw(st.booleans()):
        factors["scale"] = draw(st.lists(st.integers(1, 50), min_size=1, max_size=3, unique=True))
    if draw(st.booleans()):
        factors["cache"] = draw(st.lists(st.sampled_from(["warm", "cold"]), min_size=1, max_size=2, unique=True))
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=2, unique=True)):
        levels = st.one_of(st.integers(0, 99), st.sampled_from(["4MB", "64MB", "a b"]))
        factors[name] = draw(st.lists(levels, min_size=1, max_size=3, unique_by=str))
    variables = {
        name: draw(
            st.lists(st.one_of(st.integers(0, 99), st.sampled_from(["spread", "a b"])), max_size=3, unique_by=str)
        )
        for name in draw(st.lists(st.sampled_from(VARIABLES), max_size=2, unique=True))
    }
    variables = {name: levels for name, levels in variables.items() if levels}
    named = factors | variables
    varied = [name for name, levels in named.items() if len(levels) > 1 and name not in ("load", "scale", "cache")]
    lines = ['title = "generated"']
    if varied:
        compared = draw(st.sampled_from(varied))
        lines.append(f"compare = {as_toml(compared)}")
        lines.append(f"baseline = {as_toml(draw(st.sampled_from(named[compared])))}")
    lines += ["[factors]", *(f"{as_key(name)} = {as_toml(levels)}" for name, levels in factors.items())]
    lines += ["[factors.variables]", *(f"{name} = {as_toml(levels)}" for name, levels in variables.items())]
    lines += [f'[workloads.{name}]\nsql = "SELECT 1"\nsettings = {{ jit = "off" }}' for name in workloads]
    lines += [f"[datasets.{name}]\nscale = 2" for name in datasets]
    lines += [f"[loads.{name}]\nclients = {name[1]}" for name in loads]
    kinds = draw(st.lists(st.sampled_from(["exclude", "only"]), max_size=2))
    for kind in kinds:
        chosen = draw(st.lists(st.sampled_from(sorted(named)), min_size=1, max_size=2, unique=True))
        rows = [f"{as_key(name)} = {as_toml(draw(st.sampled_from(named[name])))}" for name in chosen]
        lines += [f"[[{kind}]]", *rows]
    return "\n".join(lines) + "\n"


@pytest.mark.slow
@settings(max_examples=250, derandomize=True, deadline=None)
@given(study_texts(), st.integers(0, 2**32))
def test_every_arm_is_in_its_context_once_and_runs_once_per_round(text: str, seed: int) -> None:
    try:
        found = study(text)
    except StudyFileError:
        return
    rng = np.random.default_rng(seed)
    assert [context.number for context in found.contexts] == list(range(1, len(found.contexts) + 1))
    assert len({context.levels for context in found.contexts}) == len(found.contexts)
    (compared,) = {context.comparison.factors for context in found.contexts}
    assert len({context.comparison.baseline.label for context in found.contexts}) == 1
    for context in found.contexts:
        arms = context.comparison.arms
        assert len(arms) >= 2
        assert [arm.index for arm in arms] == list(range(len(arms)))
        assert len({arm.label for arm in arms}) == len(arms)
        assert compared[0] not in dict(context.levels)
        for arm in arms:
            names = [setting.name.lower() for setting in arm.settings]
            assert len(set(names)) == len(names)
            assert isinstance(arm.workload, PgbenchWorkload)
            given_variables = dict(arm.workload.variables)
            assert all(given_variables[name] == level for name, level in context.levels if name in VARIABLES)
        for order in block_schedule(rng, [arm.index for arm in arms], 3).rounds:
            assert sorted(order) == list(range(len(arms)))


@pytest.mark.slow
@settings(max_examples=100, derandomize=True, deadline=None)
@given(study_texts())
def test_most_generated_files_are_accepted_with_the_named_baseline(text: str) -> None:
    lines = dict(line.split(" = ", 1) for line in text.splitlines() if line.startswith(("compare", "baseline")))
    try:
        found = study(text)
    except StudyFileError as error:
        assert {one.slug for one in error.problems} <= {  # noqa: PT017 - the other branch does not fail
            "study-one-arm",
            "study-no-context",
            "study-lost-baseline",
            "study-no-match",
        }
        return
    if "baseline" not in lines:
        return
    word = lines["baseline"].strip('"')
    is_by_name = found.contexts[0].comparison.factors[0] in (*NAMES, *VARIABLES)
    label = f"{found.contexts[0].comparison.factors[0]}={word}" if is_by_name else word
    assert found.contexts[0].comparison.baseline.label == label


def test_fifty_contenders_are_allowed() -> None:
    found = study(SHORT.replace('["16.12", "17.8"]', f'["17"]\nx = {list(range(51))}'))
    assert found.verdicts == 50


def test_exclude_may_reduce_the_number_of_contenders() -> None:
    rows = "".join(f'[[exclude]]\nx = {level}\nload = "c{1 if level > 30 else 2}"\n' for level in range(1, 60))
    text = SHORT.replace('["16.12", "17.8"]', f'["17"]\nx = {list(range(60))}') + "[loads.c1]\n[loads.c2]\n" + rows
    assert [len(context.comparison.arms) for context in study(text).contexts] == [31, 30]


@pytest.mark.slow
@pytest.mark.parametrize("rows", [0, 60])
def test_ten_thousand_combinations_are_fast_and_small(rows: int) -> None:
    levels = "\n".join(f"{name} = {list(range(10))}" for name in ("a", "b", "c"))
    workloads = "".join(f'[workloads.w{i}]\nscript = "q{i}.sql"\nsettings = {{ z{i} = 1 }}\n' for i in range(5))
    excludes = "".join(f'[[exclude]]\nserver = "17.8"\na = {i % 10}\nb = {i // 10}\n' for i in range(rows))
    text = SHORT.replace("[workload]", f"{levels}\n[workload]").replace('[workload]\nscript = "query.sql"\n', workloads)
    text = text + "[settings]\n" + "".join(f"y{i} = 1\n" for i in range(10)) + excludes
    begin = time.perf_counter()
    found = study('compare = "server"\n' + text)
    elapsed = time.perf_counter() - begin
    # Each row excludes the only contender of 50 contexts.
    assert found.treatments == 10_000 - 100 * rows
    # It takes a fifth of a second on an idle machine; the bound allows for a busy one.
    assert elapsed < 5
    tracemalloc.start()
    study('compare = "server"\n' + text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000


def test_a_repeated_level_of_the_compared_setting_is_an_a_a_comparison() -> None:
    text = SHORT.replace('["16.12", "17.8"]', '["17.8"]\nwork_mem = ["4MB", "4MB", "64MB"]')
    [context] = study(text).contexts
    labels = [arm.label for arm in context.comparison.arms]
    assert labels == ["work_mem=4MB", "work_mem=4MB (2)", "work_mem=64MB"]
    assert context.comparison.arms[1].settings == context.comparison.baseline.settings


def test_a_repeated_level_of_the_compared_variable_is_an_a_a_comparison() -> None:
    text = SHORT.replace('["16.12", "17.8"]', '["17.8"]\n[factors.variables]\nrows = [10, 10, 20]')
    [context] = study(f'compare = "rows"\n{text}').contexts
    assert [arm.label for arm in context.comparison.arms] == ["rows=10", "rows=10 (2)", "rows=20"]


def test_one_of_repeated_levels_can_be_excluded_by_its_label() -> None:
    text = SHORT.replace('["16.12", "17.8"]', '["17.8"]\nwork_mem = ["4MB", "4MB", "64MB"]\njit = ["on", "off"]')
    text = f'compare = "work_mem"\n{text}[[exclude]]\nwork_mem = "4MB (2)"\njit = "off"\n'
    first, second = study(text).contexts
    assert [len(context.comparison.arms) for context in (first, second)] == [3, 2]
