"""The HTML page: order of sections, numbers equal to those of the JSON document, and user text escaped."""

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from statistics import geometric_mean
from typing import Any

import pytest

from pgversus.answers.answer import Answer, StudyAnswer, Unanswered
from pgversus.records.plans import StatementName
from pgversus.records.preparation import RUNNING_SERVER
from pgversus.report.charts.export import study_charts
from pgversus.report.html import data_text, inlined
from pgversus.report.json_document import study_document
from pgversus.report.page.environment import environment
from pgversus.report.page.page import page_html
from pgversus.report.page.verdicts import study_badge
from pgversus.report.sentences import contender_sentence
from pgversus.report.values import uses_factors, value_text
from pgversus.stats.confidence import Verdict
from pgversus.study.design import Design, StopReason
from pgversus.study.metrics import QUANTILES, Metric
from pgversus.study.settings import Setting
from pgversus.study.study import Invocation, StudyKind
from pgversus.study.workload import PgbenchWorkload, Script
from pgversus.text.translation import Language, use_language
from pgversus.text.units import ratio_texts
from tests.builders import answer, comparison, judged_by, open_loop, rate_block, study_answer
from tests.unit.report import cases
from tests.unit.report.pages import Page, read_page
from tests.unit.report.richest import all_plans, whole_studies
from tests.unit.report.test_languages import MARK_UP, NAMES, UNITS, Bracketed, slugs, untranslated

SECTIONS = ["answer", "verdicts", "trust", "sweeps", "latency", "why", "environment", "method", "published", "repeat"]
HOSTILE = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>\x1b[2J\u202e\"'`${x}{{7*7}}"


def with_latencies(one: Answer) -> Answer:
    """Return the answer with the latency distributions of its own trials, as read back."""
    found = {
        arm: [block.trials[arm].histogram for block in one.blocks if block.has(arm)]
        for arm in range(len(one.comparison.arms))
    }
    return replace(one, latencies=lambda: found)


def study() -> StudyAnswer:
    """Return a study with every section that a page may have."""
    parts = [with_latencies(cases.CASES[name]()) for name in ("faster", "slower_by_half", "undecided", "equivalent")]
    whole = study_answer(
        [*parts, with_latencies(cases.tail_latency())], published="level,tps,confounded\n16.12,1,\n17.8,2,'no room'\n"
    )
    placed = tuple(
        replace(one, context=replace(one.context, levels=(("workload", f"w{n // 2}"), ("load", f"c{n % 2}"))))
        for n, one in enumerate(whole.answers)
    )
    invocation = Invocation(
        program="pgversus 0.1", command="pgversus run s.toml", file_name="s.toml", file_text="title = 'x'\n"
    )
    return replace(whole, answers=placed, invocation=invocation)


@pytest.fixture(scope="module")
def page() -> Page:
    return read_page(page_html(study()))


def test_a_page_starts_with_the_answer_and_ends_with_how_to_repeat_it(page: Page) -> None:
    found = [given["id"] for tag, given in page.elements if tag == "section"]
    assert [name for name in found if name in SECTIONS] == SECTIONS


def test_a_page_shows_different_conditions_and_confounding_next_to_a_published_ratio(page: Page) -> None:
    assert (
        "cannot tell: scale 1 here, not published; clients 4 here, not published (confounded: 'no room')" in page.text
    )


@pytest.mark.slow
def test_every_study_has_a_page_with_a_figure_per_chart_and_as_many_cells_as_headers() -> None:
    for whole in whole_studies():
        made = read_page(page_html(whole))
        tables = made.row_lengths()
        assert len(tables) > 3
        assert [lengths for lengths in tables if len(set(lengths)) > 1] == []
        charts = [chart.name for chart in study_charts(whole)]
        assert len(set(charts)) == len(charts)
        assert [given["data-chart"] for tag, given in made.elements if tag == "figure"] == [f"data-{n}" for n in charts]
        assert set(made.data) == {"chart-config", *(f"data-{name}" for name in charts)}


def test_only_scripts_of_the_page_may_run_and_nothing_may_be_requested(page: Page) -> None:
    policy = dict(part.strip().partition(" ")[::2] for part in page.policy().split(";"))
    hashes = {hashed(text) for text in page.scripts}
    assert len(page.scripts) == 2
    assert set(policy["script-src"].split()) == hashes
    assert policy["style-src"] == hashed(page.styles[0])
    assert policy["default-src"] == "'none'"
    assert not any("unsafe" in value for name, value in policy.items() if name != "style-src-attr")
    asking = [given for _, given in page.elements for name in ("src", "srcset", "action", "data") if name in given]
    assert asking == []
    assert all(given["href"].startswith("#") for _, given in page.elements if "href" in given)


def hashed(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_charts_and_tables_have_accessible_names(page: Page) -> None:
    drawings = [given for _, given in page.elements if given.get("role") == "img"]
    assert drawings
    assert all(len(given["aria-label"]) > 40 for given in drawings)
    # Each chart has a table of its figures, and wide tables can be reached and scrolled by keyboard.
    regions = [given for _, given in page.elements if given.get("role") == "region"]
    assert all(given["tabindex"] == "0" and (given.get("aria-label") or given["aria-labelledby"]) for given in regions)
    assert len(regions) >= len(drawings)


def hostile_study() -> StudyAnswer:
    """Return a study with hostile text in every place that users and servers control."""
    one = cases.invalid()
    load = PgbenchWorkload(scripts=(Script(name=HOSTILE, text=HOSTILE + "x" * 2_000_000),), clients=1)
    arms = tuple(
        replace(arm, label=f"{HOSTILE}{arm.index}", workload=load, settings=(Setting(name=HOSTILE, value=HOSTILE),))
        for arm in one.comparison.arms
    )
    blocks = tuple(
        block._replace(failures=tuple(replace(failure, message=HOSTILE) for failure in block.failures))
        for block in one.blocks
    )
    requested = replace(one.comparison, arms=arms)
    facts = tuple(replace(fact, version=HOSTILE, compiler=HOSTILE, flags=HOSTILE) for fact in one.arms)
    reported = replace(
        one, comparison=requested, blocks=blocks, arms=facts, client=HOSTILE, host={"cpu_model": HOSTILE}
    )
    plans = all_plans()
    labels = (arms[0].label, arms[2].label)
    name = StatementName(number=1, text=HOSTILE + "y" * 1_000_000)
    pair = tuple(replace(each, statement=name, labels=labels) for each in plans.compared[:3])
    reported = with_latencies(replace(reported, plans=lambda: replace(plans, compared=pair)))
    whole = study_answer([reported])
    (placed,) = whole.answers
    return replace(
        whole,
        answers=(replace(placed, context=replace(placed.context, levels=((HOSTILE, HOSTILE),))),),
        study=replace(whole.study, title=HOSTILE, question=HOSTILE),
        invocation=Invocation(program=HOSTILE, command=HOSTILE, file_name=HOSTILE, file_text=HOSTILE),
        builds={HOSTILE: {"artifact_sha256": HOSTILE}},
    )


def test_names_and_queries_remain_text() -> None:
    text = page_html(hostile_study())
    made = read_page(text)
    assert len(made.scripts) == 2
    assert not any(tag == "img" for tag, _ in made.elements)
    assert not any(name.startswith("on") for _, given in made.elements for name in given)
    # The text is shown with control characters escaped, and templates are not expanded.
    assert "<img src=x onerror=window.pwned=1>\\x1b[2J\\u202e" in made.text
    assert "{{7*7}}" in made.text
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", text)
    # A literal of a megabyte does not add a megabyte to the page.
    assert len(text) < 1_600_000


def test_data_cannot_end_its_element() -> None:
    value = {"x": "</script><!-- &amp; \u2028"}
    assert not set("<>&") & set(data_text(value))
    assert json.loads(data_text(value)) == value
    assert "</script" not in inlined("'</script>'")
    with pytest.raises(ValueError, match="end of a script element"):
        inlined("<!-- <script>")


def rows_of(page: Page, name: str) -> Iterator[dict[str, Any]]:
    """Yield the rows that a chart draws."""
    specification = page.data[name]
    for part in (specification, *specification["layer"]):
        yield from part.get("data", {}).get("values", ())


def test_every_ratio_of_the_page_equals_that_of_the_document_and_of_the_trials(page: Page) -> None:
    whole = study()
    verdicts = list(study_document(whole)["verdicts"])
    drawn = {
        row["label"]: row for name in page.data if "forest" in name for row in rows_of(page, name) if "verdict" in row
    }
    assert len(drawn) == len(verdicts)
    for verdict, one in zip(verdicts, whole.answers, strict=True):
        row = drawn[verdict["context"]]
        assert (row["ratio"], row["low"], row["high"]) == (verdict["ratio"], verdict["low"], verdict["high"])
        shown = ratio_texts(verdict["ratio"], verdict["low"], verdict["high"], as_factors=uses_factors(whole.answers))
        assert {shown.value, shown.interval} <= set(page.texts)
        assert verdict["ratio"] == pytest.approx(recomputed(one), rel=1e-12)


def recomputed(one: Answer) -> float:
    """Return the geometric mean of the blocks' ratios, computed independently."""
    values = [[value_of(one, block.trials[arm]) for arm in (0, 1)] for block in one.blocks]
    return math.prod(theirs / ours for ours, theirs in values) ** (1 / len(values))


def value_of(one: Answer, trial: Any) -> float:
    if one.analysis.metric is Metric.TPS:
        return float(trial.transactions / trial.seconds)
    return float(min(trial.histogram.quantile(0.95), trial.latency_max_s))


def test_the_quotient_of_the_values_of_a_verdict_is_its_ratio(page: Page) -> None:
    whole = study()
    for verdict, one in zip(study_document(whole)["verdicts"], whole.answers, strict=True):
        means = [geometric_mean(value_of(one, block.trials[arm]) for block in one.blocks) for arm in (0, 1)]
        assert list(verdict["values"].values()) == pytest.approx(means)
        assert verdict["values"]["contender"] / verdict["values"]["baseline"] == pytest.approx(verdict["ratio"])
        assert " → ".join(value_text(one.analysis.metric, value) for value in means) in page.text


def test_every_trial_is_drawn_relative_to_its_arms_mean(page: Page) -> None:
    whole = study()
    for one in whole.answers:
        name = next(name for name in page.data if name.startswith(f"data-trials-{one.context.number}-"))
        drawn = {(row["block"], row["series"]): row["share"] for row in rows_of(page, name) if "share" in row}
        for arm in one.comparison.arms:
            values = [value_of(one, block.trials[arm.index]) for block in one.blocks]
            mean = math.prod(values) ** (1 / len(values))
            for block, value in zip(one.blocks, values, strict=True):
                assert drawn[block.number, arm.label] == pytest.approx(value / mean, abs=1e-5)


def test_a_percentile_of_the_chart_is_the_one_of_the_tables(page: Page) -> None:
    whole = study()
    one = whole.answers[4]
    name = next(name for name in page.data if name.startswith(f"data-latency-{one.context.number}-"))
    drawn = set()
    for arm in one.comparison.arms:
        blocks = [block.trials[arm.index] for block in one.blocks]
        for row in rows_of(page, name):
            if row.get("series") != arm.label:
                continue
            q = 1 - 10 ** -row["nines"]
            mean = geometric_mean(trial.histogram.quantile(q) for trial in blocks)
            assert row["ms"] == pytest.approx(1000 * mean, rel=1e-6)
            for metric, quantile in QUANTILES.items():
                if quantile == pytest.approx(q):
                    shown = one.analysis.arm_values[arm.index][metric].value
                    assert row["ms"] == pytest.approx(1000 * shown, rel=1e-6)
                    drawn.add((arm.index, metric))
    values = one.analysis.arm_values
    assert drawn == {(arm, metric) for arm in range(len(values)) for metric in QUANTILES if metric in values[arm]}
    assert Metric.LATENCY_P95 in values[0]
    # 400 transactions in a block are too few for it.
    assert Metric.LATENCY_P99 not in values[0]


@pytest.mark.slow
def test_a_page_is_translated_completely() -> None:
    allowed = NAMES | UNITS | MARK_UP | slugs() | {"pgversus", "SHA-256", "tps", "s.toml", "title", "run", "work_mem"}
    allowed |= {f"p{q}" for q in ("75", "90", "99.5", "99.9", "99.95", "99.99", "99.999")}
    with use_language(Language.JAPANESE, Bracketed()):
        for whole in (study(), *whole_studies()):
            made = read_page(page_html(whole))
            labels = [
                given.get(name, "") for _, given in made.elements for name in ("aria-label", "placeholder", "alt")
            ]
            drawn = [text for value in made.data.values() for text in words_drawn(value)]
            assert untranslated("\n".join([made.text, *labels, *drawn]), allowed) == set()


def words_drawn(value: Any, key: str = "") -> Iterator[str]:
    """Yield visible texts of a specification: titles, labels and texts in the data."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from words_drawn(one, name)
    elif isinstance(value, list):
        for one in value:
            yield from words_drawn(one, key)
    elif isinstance(value, str) and key in {"title", "subtitle", "text", "label", "row", "column", "words", "series"}:
        yield value
    elif isinstance(value, str) and key == "labelExpr":
        yield from re.findall(r'"([^"]*)"', value)


def test_a_comparison_of_a_server_with_itself_is_reported() -> None:
    requested = comparison(("17.8", "17.8 (2)"))
    same = replace(requested, arms=tuple(replace(arm, server=requested.baseline.server) for arm in requested.arms))
    good, bad = (answer(blocks, same) for blocks in (cases.steady(1.0, blocks=8), cases.steady(1.2)))
    assert "as expected" in read_page(page_html(study_answer([good]))).text
    assert "Do not trust these results" in read_page(page_html(study_answer([bad]))).text
    assert "No server is compared with itself" in read_page(page_html(study_answer([cases.faster()]))).text


def text_of(whole: StudyAnswer) -> str:
    return read_page(page_html(whole)).text


def test_an_undecided_comparison_of_a_server_with_itself_is_not_a_good_sign() -> None:
    requested = comparison(("17.8", "17.8 (2)", "17.8 (3)"))
    same = replace(requested, arms=tuple(replace(arm, server=requested.baseline.server) for arm in requested.arms))
    invalid = answer(cases.invalid().blocks, same, invalid=frozenset({1}))
    assert "as expected" not in text_of(study_answer([answer(cases.steady(1.1, blocks=1), same)]))
    assert "17.8 (2) / 17.8: no result" in text_of(study_answer([invalid]))


def test_one_binary_under_two_names_is_the_same_server() -> None:
    one = answer(cases.steady(1.0, blocks=8))
    assert "A/A, " in text_of(study_answer([replace(one, arms=tuple(replace(a, sha256="1") for a in one.arms))]))
    assert "A/A, " not in text_of(study_answer([one]))


@pytest.mark.parametrize("failed", [True, False])
def test_a_study_without_measurements_is_not_valid(failed: bool) -> None:  # noqa: FBT001
    lost = Unanswered(context=cases.faster().context, failure="no room" if failed else None, stopped=StopReason.BUDGET)
    text = text_of(study_answer([], unanswered=[lost]))
    assert "✖ invalid" in text
    assert "is wrong" not in text.lower()
    assert ("no room" if failed else "not started: no budget left") in text


@pytest.mark.parametrize(
    ("names", "badge"),
    [
        (("faster",), "valid"),
        (("undecided",), "undecided"),
        (("faster", "undecided"), "partly undecided"),
        (("faster", "mixed_builds"), "caution"),
        (("undecided", "invalid"), "caution"),
    ],
)
def test_an_undecided_study_does_not_have_the_badge_valid(names: tuple[str, ...], badge: str) -> None:
    assert study_badge(study_answer([cases.CASES[name]() for name in names])).word == badge


def test_external_servers_are_not_described_as_freshly_started() -> None:
    one = cases.faster()
    running = replace(one, arms=tuple(replace(facts, origin=RUNNING_SERVER) for facts in one.arms))
    assert "started on a fresh copy" in text_of(study_answer([one]))
    assert "started on a fresh copy" not in text_of(study_answer([one, running]))
    assert "neither restarted nor given fresh data" in text_of(study_answer([one, running]))


def test_windows_and_operations_of_one_study_are_both_described() -> None:
    other = replace(cases.faster(), comparison=comparison(design=Design(rounds=2, window_s=5.0, seed=7)))
    text = text_of(study_answer([cases.faster(), other, cases.operation()]))
    assert "2 windows of 5 s" in text
    assert "every arm performs the operation once" in text


def test_the_sentence_on_each_contender_of_one_comparison_is_shown_once() -> None:
    one = cases.invalid()
    text = text_of(study_answer([one]))
    assert "2 verdicts: " in text
    for result in one.analysis.results:
        assert text.count(contender_sentence(one, result, as_factors=False)[-60:]) == (
            2 if result.verdict is Verdict.SLOWER else 1
        )


def test_only_a_run_of_a_study_file_is_advised_to_resume() -> None:
    stopped = answer(cases.steady(1.1, blocks=2), stopped=StopReason.INTERRUPTED)
    whole = study_answer([stopped], stopped=StopReason.INTERRUPTED)
    alone = replace(whole, study=replace(whole.study, title="", kind=StudyKind.COMPARISON))
    assert "again to resume" not in text_of(alone)
    of_file = replace(whole, answers=tuple(replace(one, is_from_file=True) for one in whole.answers))
    assert text_of(of_file).count("again to resume") == 1


def test_a_setting_that_differs_between_contexts_is_shown_with_its_context() -> None:
    def with_memory(value: str) -> Answer:
        requested = comparison()
        setting = (Setting(name="work_mem", value=value), Setting(name="jit", value="off"))
        return answer(
            cases.steady(1.1), replace(requested, arms=tuple(replace(arm, settings=setting) for arm in requested.arms))
        )

    found = environment(study_answer([with_memory("4MB"), with_memory("64MB")])).settings
    assert ("workload=w1 load=c4", "16.12", "work_mem", "4MB") in found
    assert ("workload=w2 load=c4", "16.12", "work_mem", "64MB") in found
    assert ("", "16.12", "jit", "off") in found


def test_a_setting_of_some_contexts_is_shown_with_these_contexts() -> None:
    def with_settings(*values: str) -> Answer:
        requested = comparison()
        settings = tuple(
            Setting(name=name, value=value) for name, value in zip(("work_mem", "jit"), values, strict=False)
        )
        return answer(
            cases.steady(1.1), replace(requested, arms=tuple(replace(arm, settings=settings) for arm in requested.arms))
        )

    whole = study_answer([with_settings("4MB", "off"), with_settings("4MB"), with_settings("64MB")])
    found = [(place, name, value) for place, arm, name, value in environment(whole).settings if arm == "16.12"]
    assert found == [
        ("workload=w1 load=c4, workload=w2 load=c4", "work_mem", "4MB"),
        ("workload=w3 load=c4", "work_mem", "64MB"),
        ("workload=w1 load=c4", "jit", "off"),
    ]


def test_charts_with_similar_names_are_distinguished() -> None:
    parts = [with_latencies(cases.faster()) for _ in range(3)]
    whole = study_answer(parts)
    levels = ("a b", "a/b", "表" * 200)
    placed = [
        replace(one, context=replace(one.context, levels=(("workload", level),)))
        for one, level in zip(whole.answers, levels, strict=True)
    ]
    names = [chart.name for chart in study_charts(replace(whole, answers=tuple(placed)))]
    assert len(set(names)) == len(names) == 7
    assert max(len(name.encode()) for name in names) <= 80


def test_a_percentile_without_an_interval_has_no_smallest_difference() -> None:
    blocks = [rate_block(n, 100.0 + n, 120.0, transactions=60) for n in range(1, 11)]
    one = answer(blocks, comparison(design=judged_by(Metric.LATENCY_P95), workload=open_loop()))
    (verdict,) = study_document(study_answer([one]))["verdicts"]
    assert verdict["low"] is None
    assert verdict["smallest_difference"] is None


def large_study() -> StudyAnswer:
    """Return a study of 2,000 trials in 20 contexts."""
    one = cases.faster_of_open_size()
    blocks = [
        block._replace(number=number)
        for number, block in enumerate([block for _ in range(9) for block in one.blocks][:50], start=1)
    ]
    return study_answer([with_latencies(answer(blocks)) for _ in range(20)])


@pytest.mark.slow
def test_a_page_of_two_thousand_trials_is_small_enough_to_send() -> None:
    whole = large_study()
    assert sum(len(block.trials) for one in whole.answers for block in one.blocks) == 2000
    assert len(page_html(whole).encode()) < 1_500_000
