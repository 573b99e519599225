"""Two results side by side: matching rows, their agreement, and the reasons why others are not comparable."""

import csv
import html
import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from pgversus.answers.answer import Answer, StudyAnswer, Unanswered
from pgversus.records.preparation import BuildRecord
from pgversus.report.console import WIDEST
from pgversus.report.json_document import json_pieces
from pgversus.report.side_by_side.agreement import Agreement, DiscrepancyKind, MismatchReason, SideBySide, quotient
from pgversus.report.side_by_side.document import SCHEMA, side_by_side, side_by_side_document, side_by_side_table
from pgversus.report.side_by_side.section import side_by_side_section
from pgversus.report.side_by_side.text import print_side_by_side, side_by_side_html, side_by_side_markdown
from pgversus.report.tidy_tables import csv_lines
from pgversus.study.comparison import Arm, CacheState
from pgversus.study.dataset import Dataset, SetupFile
from pgversus.study.design import Design, StopReason
from pgversus.study.metrics import Metric
from pgversus.study.settings import Setting
from pgversus.study.workload import PgbenchWorkload, QueryMode, Script
from pgversus.text.translation import Language, use_language
from tests.builders import answer, comparison, judged_by, rate_block, study_answer
from tests.unit.report.cases import CASES, noisy, steady
from tests.unit.report.richest import whole_studies
from tests.unit.report.test_languages import MARK_UP, NAMES, UNITS, Bracketed, slugs, untranslated

LOAD = PgbenchWorkload(scripts=(Script(name="a.sql", text="SELECT 1;"),), clients=4)


def of(one: Answer, **changed: Any) -> Answer:
    """Return the answer with a changed comparison and the same blocks."""
    requested = replace(one.comparison, **changed)
    return replace(one, comparison=requested, context=replace(one.context, comparison=requested))


def with_arms(one: Answer, change: Callable[[Arm], Arm]) -> Answer:
    return of(one, arms=tuple(map(change, one.comparison.arms)))


def study(*answers: Answer) -> StudyAnswer:
    return study_answer(answers)


def single(one: Answer) -> StudyAnswer:
    """Return a study as of the command line: one context without a name."""
    return replace(study_answer([one]), answers=(one,))


def put(a: Answer, b: Answer) -> SideBySide:
    return side_by_side(single(a), single(b))


def kinds(found: SideBySide) -> list[DiscrepancyKind]:
    (row,) = found.rows
    return [note.kind for note in row.notes]


def reasons(found: SideBySide) -> list[tuple[MismatchReason, ...]]:
    return [tuple(kind for kind, _ in one.reasons) for one in found.not_comparable]


def words(found: SideBySide) -> str:
    return "; ".join(words for one in found.not_comparable for _, words in one.reasons)


@pytest.mark.parametrize(
    ("a", "b", "expected", "said"),
    [
        (steady(1.1), steady(1.1), Agreement.AGREE, "agree within ±2.0 %"),
        (steady(1.1), steady(1.5), Agreement.LARGER_IN_B, "differ: larger effect in B"),
        (steady(0.5), steady(0.9), Agreement.LARGER_IN_A, "differ: larger effect in A"),
        (steady(1.001), steady(0.8), Agreement.HIGHER_IN_A, "differ: higher ratio in A"),
        (steady(0.999), steady(1.2), Agreement.HIGHER_IN_B, "differ: higher ratio in B"),
        (steady(0.999), steady(0.8), Agreement.LARGER_IN_B, "differ: larger effect in B"),
        (steady(1.1), steady(0.9), Agreement.OPPOSITE, "differ: faster in A, slower in B"),
        (steady(0.9), steady(1.1), Agreement.OPPOSITE, "differ: slower in A, faster in B"),
        (steady(1.1), noisy(0.3), Agreement.OPEN, "inconclusive"),
        (steady(1.1), steady(1.1, blocks=2), Agreement.OPEN, "inconclusive: B has no interval yet"),
        (steady(1.1, blocks=2), steady(1.1), Agreement.OPEN, "inconclusive: A has no interval yet"),
    ],
)
def test_ratios_are_compared_by_their_intervals(a: list[Any], b: list[Any], expected: Agreement, said: str) -> None:
    (row,) = put(answer(a), answer(b)).rows
    assert (row.agreement, row.words) == (expected, said)
    assert not row.by_role


def test_the_interval_of_the_quotient_combines_both_intervals() -> None:
    (row,) = put(answer(noisy(0.02, 8)), answer(noisy(0.05, 8))).rows
    found = row.quotient
    assert found is not None
    assert row.a.ratio is not None
    assert row.b.ratio is not None
    assert math.isclose(found.value, row.b.ratio / row.a.ratio)
    assert row.a.low is not None
    assert row.a.high is not None
    assert row.b.low is not None
    assert row.b.high is not None
    halves = [math.log(side.high / side.low) / 2 for side in (row.a, row.b) if side.high and side.low]
    assert math.isclose(math.log(found.high / found.low) / 2, math.hypot(*halves))


def test_the_interval_of_a_quotient_may_be_too_wide_for_a_number() -> None:
    (row,) = put(answer(noisy(0.02, 8)), answer(noisy(0.05, 8))).rows
    wide = replace(row.a, low=math.exp(-600.0), high=math.exp(600.0))
    assert quotient(wide, row.b) is not None
    assert quotient(wide, wide) is None


def test_an_invalid_contender_is_shown_without_a_judgment() -> None:
    found = side_by_side(single(CASES["invalid"]()), single(CASES["invalid"]()))
    assert [row.agreement for row in found.rows] == [Agreement.OPEN, Agreement.AGREE]
    assert found.rows[0].words == "inconclusive: A is invalid"


def test_with_different_margins_the_larger_one_is_used() -> None:
    wide = answer(steady(1.13), comparison(design=Design(margin=0.1, seed=7)))
    found = put(answer(steady(1.1)), wide)
    assert kinds(found) == [DiscrepancyKind.MARGIN]
    assert found.rows[0].words == "agree within ±10.0 %"
    assert found.rows[0].notes[0].words == "margin differs: ±2.0 % in A, ±10.0 % in B; the larger one is used"


def test_ratios_with_different_baseline_builds_are_not_judged() -> None:
    one = answer(steady(1.1))
    other = replace(one, arms=(replace(one.arms[0], version="16.14", compiler="clang 19"), one.arms[1]))
    (row,) = put(one, other).rows
    assert row.agreement is Agreement.NOT_JUDGED
    assert row.quotient is None
    assert row.words == "not judged: the baselines differ"
    assert row.notes[0].words == (
        "baselines differ, so the ratios cannot be compared: PostgreSQL 16.12 in A, 16.14 in B, "
        "compiler gcc 7.5.0 in A, clang 19 in B"
    )


def test_builds_are_identified_by_their_files_if_known() -> None:
    one = answer(steady(1.1))
    known = replace(one, arms=tuple(replace(arm, sha256="1") for arm in one.arms))
    elsewhere = replace(known, arms=tuple(replace(arm, compiler="gcc, in other words") for arm in known.arms))
    assert kinds(put(known, elsewhere)) == []
    rebuilt = replace(known, arms=tuple(replace(arm, sha256="2") for arm in known.arms))
    found = put(known, rebuilt)
    assert kinds(found) == [DiscrepancyKind.BASELINE, DiscrepancyKind.CONTENDER]
    assert found.rows[0].notes[1].words == "contenders differ: different files of the same version"


def test_differences_between_builds_are_described() -> None:
    made = BuildRecord(
        source="postgresql-17.8.tar.bz2",
        source_sha256="ab" * 32,
        checked=None,
        commit=None,
        is_changed=False,
        options=("cassert",),
        profile="minimal",
        system="configure",
    )
    one = answer(steady(1.1))
    other = replace(
        one, arms=(one.arms[0], replace(one.arms[1], built_from=made, compiled_in={"debug_assertions": "on"}))
    )
    (row,) = put(one, other).rows
    assert row.agreement is Agreement.AGREE
    assert row.notes[0].words == (
        "contenders differ: build options none in A, cassert in B, "
        "source none in A, postgresql-17.8.tar.bz2 abababababab in B, debug_assertions not set in A, on in B"
    )


def test_differences_in_host_day_settings_client_window_statistics_and_rows_are_listed_per_row() -> None:
    def changed(one: Answer, side: int) -> Answer:
        host = {"cpu_model": "x86" if side else "arm", "memory_bytes": (1 + side) * 10**9, "kernel": "Linux 6"}
        arms = tuple(replace(facts, data=str(side)) for facts in one.arms)
        setting = Setting(name="work_mem", value="64MB" if side else "4MB")
        one = with_arms(one, lambda arm: replace(arm, settings=(setting,)))
        data = replace(one.comparison.dataset, full_statistics=bool(side))
        one = with_arms(one, lambda arm: replace(arm, dataset=data))
        one = of(one, design=replace(one.comparison.design, window_s=1.0 + side))
        return replace(one, host=host, arms=arms, client=f"pgbench 18.{side}", days=(f"2026-01-0{side + 1}",) * 2)

    found = put(changed(answer(steady(1.1)), 0), changed(answer(steady(1.1)), 1))
    (row,) = found.rows
    assert row.agreement is Agreement.AGREE
    assert [note.words for note in row.notes] == [
        "settings differ: work_mem 4MB in A, 64MB in B",
        "rows differ: the same commands loaded different rows in A and B",
        "statistics differ: ANALYZE read every row only in B",
        "host differs: processor arm in A, x86 in B, memory 1 GB in A, 2 GB in B",
        "measured on different days: 2026-01-01 in A, 2026-01-02 in B",
        "client differs: pgbench 18.0 in A, pgbench 18.1 in B",
        "windows per block differ: 8 windows of 1 s in A, 8 windows of 2 s in B",
    ]


def test_a_doubtful_number_is_marked_check() -> None:
    found = put(CASES["faster"](), CASES["mixed_builds"]())
    assert kinds(found) == [DiscrepancyKind.CHECK]
    assert found.rows[0].b.needs_check
    assert found.rows[0].notes[0].words.startswith("CHECK the caveats in B")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (replace(LOAD, scripts=(Script(name="a.sql", text="SELECT 2;"),)), "the script text (a.sql in A, a.sql"),
        (replace(LOAD, scripts=(Script(name="select-only"),)), "the script text (a.sql in A, select-only in B)"),
        (replace(LOAD, clients=8), "clients 4 in A, 8 in B"),
        (replace(LOAD, threads=4), "threads 1 in A, 4 in B"),
        (replace(LOAD, query_mode=QueryMode.PREPARED), "query mode simple in A, prepared in B"),
        (replace(LOAD, rate=50.0), "rate none in A, 50 in B"),
        (replace(LOAD, variables=(("n", "1"),)), "variables none in A, n=1 in B"),
        (replace(LOAD, scripts=LOAD.scripts * 2), "scripts 1 in A, 2 in B"),
        (replace(LOAD, scripts=(replace(LOAD.scripts[0], weight=3),)), "weight of a.sql 1 in A, 3 in B"),
    ],
)
def test_a_different_load_is_not_comparable_and_the_difference_is_named(changed: PgbenchWorkload, said: str) -> None:
    one = answer(steady(1.1), comparison(workload=LOAD))
    found = put(one, with_arms(one, lambda arm: replace(arm, workload=changed)))
    assert found.rows == ()
    assert reasons(found) == [(MismatchReason.WORKLOAD,)]
    assert words(found).startswith("workload differs: ")
    assert said in words(found)


def test_a_script_that_never_runs_differs_from_one_that_does() -> None:
    def mixed(weight: int | None) -> PgbenchWorkload:
        return replace(LOAD, scripts=(*LOAD.scripts, Script(name="b.sql", text="SELECT 2;", weight=weight)))

    one = answer(steady(1.1), comparison(workload=mixed(1)))
    assert len(put(one, with_arms(one, lambda arm: replace(arm, workload=mixed(None)))).rows) == 1
    found = put(one, with_arms(one, lambda arm: replace(arm, workload=mixed(0))))
    assert "weight of b.sql 1 in A, 0 in B" in words(found)


def test_the_same_load_is_comparable_whatever_its_name() -> None:
    one = answer(steady(1.1), comparison(workload=LOAD))
    called = replace(LOAD, scripts=(Script(name="b.sql", text="SELECT 1;\n"),), threads=1)
    found = put(one, with_arms(one, lambda arm: replace(arm, workload=called)))
    assert len(found.rows) == 1


def test_different_data_is_not_comparable_and_the_difference_is_named() -> None:
    one = CASES["operation"]()
    dataset = Dataset(
        pgbench_scale=50,
        setup_files=(SetupFile(path="/x/i.sql", sha256="1"),),
        prepare=one.comparison.dataset.prepare,
        variables=(("dead", "3"),),
    )
    found = put(one, with_arms(one, lambda arm: replace(arm, dataset=dataset)))
    assert reasons(found) == [(MismatchReason.DATASET,)]
    assert words(found) == (
        "dataset differs: scale 10 in A, 50 in B, the content of setup files (none in A, i.sql in B), "
        "variables dead=70 in A, dead=3 in B"
    )


def test_a_different_metric_or_cache_state_is_not_comparable() -> None:
    one = CASES["tail_latency"]()
    mean = answer(one.blocks, comparison(design=judged_by(Metric.LATENCY_MEAN), workload=one.comparison.workload))
    assert reasons(put(one, mean)) == [(MismatchReason.METRIC,)]
    assert words(put(one, mean)) == "metric differs: p95 latency in A, mean latency in B"
    assert reasons(put(one, of(one, cache=CacheState.COLD))) == [(MismatchReason.CACHE,)]


def test_an_operation_is_not_comparable_with_a_load() -> None:
    found = put(CASES["operation"](), CASES["faster"]())
    assert reasons(found) == [(MismatchReason.WORKLOAD, MismatchReason.DATASET, MismatchReason.METRIC)]
    assert found.rows == ()


def compared_setting(value: str, blocks: Sequence[Any]) -> Answer:
    """Return a comparison of two levels of a setting."""
    one = answer(list(blocks))
    levels = ("4MB", value)
    arms = tuple(
        replace(
            arm,
            label=f"work_mem={level}",
            settings=(Setting(name="work_mem", value=level),),
            server=one.comparison.baseline.server,
        )
        for arm, level in zip(one.comparison.arms, levels, strict=True)
    )
    facts = (one.arms[0], one.arms[0])
    return replace(of(one, arms=arms, factors=("work_mem",)), arms=facts)


def test_contenders_with_different_names_are_matched_by_role_with_a_note() -> None:
    found = put(compared_setting("64MB", steady(1.1)), compared_setting("128MB", steady(1.3)))
    (row,) = found.rows
    assert row.by_role
    assert row.agreement is Agreement.LARGER_IN_B
    assert [note.words for note in row.notes] == ["contenders differ: work_mem 64MB in A, 128MB in B"]
    assert side_by_side_section(found).rows[0].place == "work_mem=64MB / work_mem=128MB"


def test_comparisons_of_different_factors_are_not_comparable() -> None:
    found = put(answer(steady(1.1)), compared_setting("64MB", steady(1.1)))
    assert found.rows == ()
    assert reasons(found) == [(MismatchReason.COMPARED,)]
    assert words(found) == "the compared factors differ: server in A, work_mem in B"


def three(labels: tuple[str, str, str]) -> Answer:
    blocks = [rate_block(n, 1000.0 + n, 1100.0 - n, 1200.0 + 2 * n) for n in range(1, 7)]
    return answer(blocks, comparison(labels))


def test_several_contenders_are_matched_by_name() -> None:
    found = put(three(("15", "16", "17")), three(("15", "17", "16")))
    assert [(row.a.contender, row.b.contender) for row in found.rows] == [("16", "16"), ("17", "17")]
    found = put(three(("15", "16", "17")), answer(steady(1.1), comparison(("15", "17"))))
    assert [(row.a.contender, row.b.contender, row.by_role) for row in found.rows] == [("17", "17", False)]
    (lone,) = found.not_comparable
    assert (lone.a, lone.b) == ("select-only: 16", None)
    assert lone.reasons[0][0] is MismatchReason.COMPARED


def test_contexts_are_matched_by_content_and_the_rest_is_listed() -> None:
    loads = [replace(LOAD, scripts=(Script(name=f"{n}.sql", text=f"SELECT {n};"),)) for n in range(4)]
    ones = [answer(steady(1.1), comparison(workload=load)) for load in loads]
    a, b = study(ones[0], ones[1], ones[2]), study(ones[1], ones[0], ones[3])
    found = side_by_side(a, b)
    pairs = [(row.a.context, row.b.context) for row in found.rows]
    assert pairs == [("workload=w1 load=c4", "workload=w2 load=c4"), ("workload=w2 load=c4", "workload=w1 load=c4")]
    assert [(one.a, one.b) for one in found.not_comparable] == [("workload=w3 load=c4", "workload=w3 load=c4")]
    assert words(found).startswith("workload differs: the script text (2.sql in A, 3.sql in B)")
    fewer = side_by_side(study(ones[0]), study(ones[0], ones[1]))
    assert [(one.a, one.b) for one in fewer.not_comparable] == [(None, "workload=w2 load=c4")]
    assert words(fewer) == "only in B"


def test_a_context_not_measured_in_the_other_study_is_listed_with_the_reason() -> None:
    one = answer(steady(1.1), comparison(workload=LOAD))
    whole = study(one, with_arms(one, lambda arm: replace(arm, workload=replace(LOAD, clients=8))))
    lost = Unanswered(context=whole.answers[1].context, failure="no room", stopped=StopReason.DECIDED)
    found = side_by_side(whole, replace(whole, answers=whole.answers[:1], unanswered=(lost,)))
    assert reasons(found) == [(MismatchReason.NOT_MEASURED,)]
    assert words(found) == "not measured in B: no room"


def levelled(*values: str) -> StudyAnswer:
    """Return a study whose contexts differ only in a setting."""
    answers = []
    for number, value in enumerate(values, 1):
        setting = Setting(name="work_mem", value=value)
        one = with_arms(answer(steady(1 + number / 10)), lambda arm, own=setting: replace(arm, settings=(own,)))  # type: ignore[misc]
        answers.append(replace(one, context=replace(one.context, number=number, levels=(("work_mem", value),))))
    return replace(study_answer(answers), answers=tuple(answers))


def test_levels_of_a_setting_that_both_studies_fix_are_not_mixed() -> None:
    found = side_by_side(levelled("4MB", "64MB"), levelled("64MB", "1GB"))
    assert [(row.a.context, row.b.context) for row in found.rows] == [("work_mem=64MB", "work_mem=64MB")]
    assert [(one.a, one.b) for one in found.not_comparable] == [("work_mem=4MB", "work_mem=1GB")]
    assert reasons(found) == [(MismatchReason.LEVELS,)]


def test_a_context_without_levels_matches_the_one_with_its_settings() -> None:
    plain = with_arms(answer(steady(1.1)), lambda arm: replace(arm, settings=(Setting(name="work_mem", value="64MB"),)))
    found = side_by_side(single(plain), levelled("4MB", "64MB"))
    assert [(row.b.context, list(row.notes)) for row in found.rows] == [("work_mem=64MB", [])]
    assert [(one.a, one.b) for one in found.not_comparable] == [(None, "work_mem=4MB")]


def forms(a: StudyAnswer, b: StudyAnswer) -> dict[str, str]:
    found = side_by_side(a, b)
    file = io.StringIO()
    print_side_by_side(found, Console(file=file, width=WIDEST))
    return {
        "terminal": file.getvalue(),
        "markdown": side_by_side_markdown(found),
        "html": side_by_side_html(found),
        "csv": "".join(csv_lines(side_by_side_table(a, b))),
        "json": "".join(json_pieces(side_by_side_document(a, b))),
    }


def both() -> tuple[StudyAnswer, StudyAnswer]:
    a = study(*(CASES[name]() for name in ("faster", "slower_by_half", "undecided", "invalid")))
    b = study(*(CASES[name]() for name in ("faster", "equivalent", "operation")))
    return a, b


@pytest.mark.parametrize("form", ["terminal", "markdown", "html", "csv", "json"])
def test_every_format_has_every_row_and_every_reason(form: str) -> None:
    a, b = both()
    text = forms(a, b)[form]
    text = json.dumps(json.loads(text), ensure_ascii=False) if form == "json" else text.replace("\\", "")
    found = side_by_side(a, b)
    assert found.rows
    assert found.not_comparable
    for row in found.rows:
        assert row.words in text
    for one in found.not_comparable:
        assert (one.a or one.b or "nothing") in text
    if form in ("terminal", "markdown", "html"):
        assert "Do not compare the values of two runs directly" in text


def test_the_document_and_the_table_are_in_english_with_the_same_numbers() -> None:
    a, b = both()
    with use_language(Language.JAPANESE):
        document = json.loads(forms(a, b)["json"])
        rows = list(csv.DictReader(io.StringIO(forms(a, b)["csv"])))
    assert document["schema"] == SCHEMA
    assert document["rows"][0]["words"].startswith(("agree", "differ"))
    compared = [row for row in rows if row["comparable"] == "yes"]
    assert [float(row["a_ratio"]) for row in compared if row["a_ratio"]] == [
        row["a"]["ratio"] for row in document["rows"] if row["a"]["ratio"] is not None
    ]
    assert len(rows) == len(document["rows"]) + len(document["not_comparable"])
    assert all(len(row) == len(rows[0]) for row in rows)


def test_user_text_does_not_become_markup_and_the_page_loads_nothing() -> None:
    evil = '</td><script>alert("x")</script> | `a` *b* \x1b[31m'
    one = answer(steady(1.1), comparison(("16.12", evil)))
    found = side_by_side(replace(study(one), results=evil), study(one))
    page = side_by_side_html(found)
    assert "<script" not in page
    assert "script-src 'none'" in html.unescape(page)
    assert 'lang="en"' in page
    assert "\x1b" not in page
    assert "http" not in page.replace("http-equiv", "")
    assert "\\| \\`a\\` \\*b\\*" in side_by_side_markdown(found)
    with use_language(Language.JAPANESE):
        assert 'lang="ja"' in side_by_side_html(found)


@pytest.mark.slow
def test_the_comparison_is_translated_completely() -> None:
    studies = list(whole_studies())
    allowed = NAMES | UNITS | MARK_UP | slugs() | {"A", "B", "zonky", "gcc", "server", "work_mem"}
    with use_language(Language.JAPANESE, Bracketed()):
        for other in studies:
            found = side_by_side(studies[0], other)
            file = io.StringIO()
            print_side_by_side(found, Console(file=file, width=WIDEST))
            assert untranslated(file.getvalue(), allowed) == set()
            assert untranslated(side_by_side_markdown(found), allowed) == set()


def test_hundreds_of_contexts_are_matched() -> None:
    ones = [
        answer(steady(1.1, blocks=4), comparison(workload=replace(LOAD, variables=(("n", str(n)),))))
        for n in range(300)
    ]
    found = side_by_side(study(*ones), study(*reversed(ones)))
    assert len(found.rows) == 300
    assert found.not_comparable == ()


def test_an_empty_study_has_nothing_to_compare() -> None:
    found = side_by_side(study(), study(CASES["faster"]()))
    assert found.rows == ()
    assert "A and B contain no comparable results" in " ".join(side_by_side_section(found).sentences)
