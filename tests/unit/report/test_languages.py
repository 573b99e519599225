"""Reports are translated completely: no text stays English by accident, and documents stay English on purpose."""

import io
import json
import os
import re
from functools import cache
from gettext import NullTranslations
from pathlib import Path

import pytest
from rich.console import Console

from pgversus.answers.answer import StudyAnswer
from pgversus.answers.read import read_answer
from pgversus.plans.sentences import headline, sentences
from pgversus.report.caveats import SENTENCES
from pgversus.report.console import WIDEST
from pgversus.report.html import plans_html
from pgversus.report.json_document import document, json_pieces, study_document
from pgversus.report.markdown import markdown, plans_markdown
from pgversus.report.plans import plans_document, plans_text
from pgversus.report.terminal import print_answer, print_study_answer
from pgversus.report.tidy_tables import csv_lines, verdict_table
from pgversus.report.verdicts import verdict_word
from pgversus.stats.confidence import Verdict
from pgversus.study.counters import COUNTERS
from pgversus.study.metrics import QUANTILES
from pgversus.text.translation import Language, use_language
from pgversus.text.units import change, duration, latency, size
from tests.builders import DATA, GOLDEN, study_answer
from tests.real_results import unpacked
from tests.unit.plans.test_corpus import STEPS, changed, plans
from tests.unit.report.cases import CASES
from tests.unit.report.richest import all_plans, single_comparisons, whole_studies

JAPANESE = GOLDEN / "ja"
OF_USERS = (
    'pgbench: error: ERROR: relation "nowhere" does not exist',
    "Is one of them *faster*?",
    "Two | workloads",
    "'no room'",
    "'no'",
)
"""Texts of studies and of other programs."""
NAMES = frozenset(
    {
        *COUNTERS,
        *("PostgreSQL", "pgbench", "pg_dump", "gcc", "zonky", "wheel", "cassert", "full", "meson", "latency_p95"),
        *("workload", "load", "scale", "dead", "jit", "enable_x", "work_mem", "wal_level", "replica", "on", "off"),
        *("simple", "prepared", "select-only", "tpcb-like", "rows", "budget", "max-blocks", "pgbench_accounts"),
        *("margin", "precision", "db1", "db2"),
        *(
            "clients",
            "version",
            "q.sql",
            "lag.sql",
            "db.sql",
            "dirty.sql",
            "studies",
            "pgversus-results",
            "s-quick",
            "test",
        ),
        *("VACUUM", "SELECT", "Seq", "Scan", "Index", "using", "Filter", "Sort", "Key", "public.t"),
    }
)
"""Names of programs, files, settings, factors and counters, and output of EXPLAIN."""
UNITS = frozenset({"ms", "µs", "kB", "MB", "GB", *(metric.short for metric in QUANTILES)})
MARK_UP = frozenset({"details", "summary"})
_PLACE = re.compile(r"(\{\w*\})")
_LETTER = re.compile(r"[a-zA-Z]\d*(\.[a-z])?")
_WORD = re.compile(r"[^\W\d_][\w.-]*")


class Bracketed(NullTranslations):
    """A language that puts every message in brackets, except for its placeholders."""

    def gettext(self, message: str) -> str:
        return "".join(part if _PLACE.fullmatch(part) else f"⟦{part}⟧" for part in _PLACE.split(message) if part)

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return self.gettext(msgid1 if n == 1 else msgid2)


def untranslated(text: str, names: frozenset[str]) -> set[str]:
    """Return words outside of brackets that are not names."""
    # Markdown escapes characters, and never has two consecutive spaces.
    plain = re.sub(" +", " ", text.replace("\\", "").replace("&#8203;", ""))
    for one in OF_USERS:
        plain = plain.replace(one, " ")
    outside = _WORD.findall(re.sub("⟦[^⟧]*⟧", " ", plain))
    # A name of one letter is that of a table, a column, an option, or a number of clients.
    return {word for word in outside if word not in names and not _LETTER.fullmatch(word)}


@cache
def slugs() -> frozenset[str]:
    """Return the slugs of caveats."""
    return frozenset({*SENTENCES, "not-steady"})


@pytest.mark.slow
def test_a_single_comparison_is_translated_completely() -> None:
    allowed = NAMES | UNITS | slugs()
    with use_language(Language.JAPANESE, Bracketed()):
        for answer in single_comparisons():
            file = io.StringIO()
            print_answer(answer, Console(file=file, width=WIDEST))
            assert untranslated(file.getvalue(), allowed) == set()


def test_every_caveat_is_among_those_that_are_translated() -> None:
    assert {caveat.slug for answer in single_comparisons() for caveat in answer.caveats} == slugs()


@pytest.mark.slow
def test_a_study_is_translated_completely() -> None:
    allowed = NAMES | UNITS | MARK_UP | slugs()
    with use_language(Language.JAPANESE, Bracketed()):
        for answer in whole_studies():
            assert untranslated(terminal(answer), allowed) == set()
            assert untranslated(markdown(answer, with_published=True), allowed) == set()


def test_compared_plans_are_translated_completely() -> None:
    with use_language(Language.JAPANESE, Bracketed()):
        answer = all_plans()
        assert untranslated(plans_text(answer), NAMES | UNITS) == set()
        assert untranslated(plans_markdown(answer), NAMES | UNITS | MARK_UP) == set()
        page = plans_html(answer).partition("</style>")[2]
        # A level is a code.
        levels = {one.difference.level.value for one in answer.compared}
        assert untranslated(re.sub("<[^>]*>", " ", page), NAMES | UNITS | levels) == set()


@pytest.mark.parametrize(("name", "one", "other", "_level"), STEPS)
def test_plan_changes_are_translated_except_for_output_of_explain(name: str, one: str, other: str, _level: str) -> None:
    texts = [(DATA / "plans" / "corpus" / f"{name}.json").read_text()]
    texts += [node.text for plan in plans(name).values() for node in plan.nodes]
    found = changed(name, one, other)
    with use_language(Language.JAPANESE, Bracketed()):
        text = "\n".join([headline(found), *sentences(found)])
    # A condition of a node is a name as well: Hash Cond of Hash Join.
    assert untranslated(text, UNITS | frozenset(_WORD.findall("\n".join([*texts, "of"])))) == set()


def terminal(answer: StudyAnswer) -> str:
    file = io.StringIO()
    print_study_answer(answer, Console(file=file, width=WIDEST), with_published=True)
    return file.getvalue()


@pytest.mark.parametrize("case", [path.stem for path in JAPANESE.glob("*.txt")])
def test_the_japanese_answer_matches_its_golden_text(case: str) -> None:
    """Set PGVERSUS_REWRITE_GOLDEN=1 to rewrite the text, then read the diff."""
    file = io.StringIO()
    with use_language(Language.JAPANESE):
        print_answer(CASES[case](), Console(file=file, width=WIDEST))
    golden = JAPANESE / f"{case}.txt"
    text = "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())
    if os.environ.get("PGVERSUS_REWRITE_GOLDEN") == "1":
        golden.write_text(text)
    assert text == golden.read_text()


def test_every_verdict_has_a_japanese_golden_text() -> None:
    found = {CASES[path.stem]().analysis.results[0].verdict for path in JAPANESE.glob("*.txt")}
    assert found == set(Verdict)


def test_words_and_units_are_translated_to_japanese() -> None:
    with use_language(Language.JAPANESE):
        assert [verdict_word(verdict) for verdict in Verdict] == ["速い", "遅い", "同等", "判定できず", "無効"]
        assert (duration(616), duration(7500), duration(44)) == ("10 分 16 秒", "2 時間 5 分", "44 秒")
        assert (latency(1.9), latency(0.0019), size(12), size(2e6)) == ("1.9 秒", "1.9 ms", "12 バイト", "2 MB")
        assert (change(16.1), change(0.9)) == ("16.1 倍", "-10.0 %")


def test_a_table_of_japanese_text_keeps_its_columns() -> None:
    file = io.StringIO()
    with use_language(Language.JAPANESE):
        print_answer(CASES["tail_latency"](), Console(file=file, width=WIDEST))
    rows = [line for line in file.getvalue().splitlines() if re.match("(平均|p50|p95|p99|最大) ", line)]
    assert len(rows) == 8
    # A Japanese character is two columns wide.
    assert {line.index("1") + (line[0] in "平最") * 2 for line in rows} == {6}


@pytest.mark.slow
def test_documents_do_not_depend_on_the_language() -> None:
    studies = [next(whole_studies()), study_answer([make() for make in CASES.values()])]
    plans_found = all_plans()

    def made() -> list[str]:
        texts = [json.dumps(document(make())) for make in CASES.values()]
        texts += ["".join(json_pieces(study_document(one))) for one in studies]
        texts += ["".join(csv_lines(verdict_table(one))) for one in studies]
        return [*texts, json.dumps(plans_document(plans_found))]

    english = made()
    with use_language(Language.JAPANESE):
        assert made() == english


def test_an_answer_is_worded_only_when_it_is_shown(tmp_path: Path) -> None:
    folder = unpacked("planner-16-vs-17", tmp_path / "results")
    with use_language(Language.JAPANESE):
        read_in_japanese = read_answer(folder)
        japanese = markdown(read_in_japanese)
    read_in_english = read_answer(folder)
    assert markdown(read_in_japanese) == markdown(read_in_english)
    with use_language(Language.JAPANESE):
        assert markdown(read_in_english) == japanese
