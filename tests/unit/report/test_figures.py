"""Every figure of a page, recomputed from the table of its trials by code independent of the program."""

import csv
import io
import math
import os
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from statistics import fmean, geometric_mean, stdev
from typing import Any

import pytest
from scipy import stats

from pgversus.answers.answer import StudyAnswer
from pgversus.answers.read import read_answer
from pgversus.report.json_document import study_document
from pgversus.report.page.page import page_html
from pgversus.report.tidy_tables import csv_lines, trial_table, verdict_table
from pgversus.report.values import uses_factors, value_text
from pgversus.study.metrics import Metric
from pgversus.text.units import percent, percent_above, ratio_texts
from tests.builders import DATA
from tests.real_results import STUDIES, unpacked
from tests.unit.report.pages import read_page

Rows = Mapping[str, Mapping[int, Mapping[str, str]]]
"""Rows of one context, by arm and block."""


@pytest.fixture(scope="module", params=STUDIES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def answer(name: str, tmp_path_factory: pytest.TempPathFactory) -> StudyAnswer:
    return read_answer(unpacked(name, tmp_path_factory.mktemp("results")))


@pytest.fixture(scope="module")
def verdicts(answer: StudyAnswer) -> list[dict[str, Any]]:
    return list(study_document(answer)["verdicts"])


def contexts(answer: StudyAnswer) -> Mapping[str, Rows]:
    """Return finished trials by context."""
    table = csv.DictReader(io.StringIO("".join(csv_lines(trial_table(answer)))))
    levels = [dict(one.context.levels) for one in answer.answers]
    found: dict[str, dict[str, dict[int, dict[str, str]]]] = defaultdict(lambda: defaultdict(dict))
    for row in table:
        if row["status"] == "finished":
            (label,) = [
                one.context.label
                for one, of in zip(answer.answers, levels, strict=True)
                if all(row[factor] == level for factor, level in of.items())
            ]
            found[label][row["arm"]][int(row["block"])] = row
    return found


def values(
    rows: Rows, verdict: Mapping[str, Any], of: Callable[[Mapping[str, str]], float]
) -> list[tuple[float, float]]:
    """Return the values of baseline and contender in each block that has both."""
    ours, theirs = rows[verdict["baseline"]], rows[verdict["contender"]]
    return [(of(ours[block]), of(theirs[block])) for block in sorted(ours.keys() & theirs.keys())]


def test_stored_results_have_the_figures_of_earlier_versions(name: str, answer: StudyAnswer) -> None:
    """Set PGVERSUS_REWRITE_GOLDEN=1 to rewrite them, then read the diff."""
    golden = DATA / "results" / f"{name}.csv"
    text = "".join(csv_lines(verdict_table(answer)))
    if os.environ.get("PGVERSUS_REWRITE_GOLDEN") == "1":
        golden.write_text(text)
    rows, expected = (list(csv.DictReader(io.StringIO(each))) for each in (text, golden.read_text()))
    assert [sorted(row) for row in rows] == [sorted(row) for row in expected]
    for row, before in zip(rows, expected, strict=True):
        for column, value in before.items():
            # Other versions of numpy and SciPy may round the last digit differently.
            if re.fullmatch(r"-?[\d.]+(e[-+]\d+)?", value):
                assert float(row[column]) == pytest.approx(float(value), rel=1e-12)
            else:
                assert row[column] == value


@pytest.mark.slow
def test_ratios_intervals_values_and_noise_match_the_trials(
    answer: StudyAnswer, verdicts: list[dict[str, Any]]
) -> None:
    trials, text = contexts(answer), read_page(page_html(answer)).text
    for verdict in verdicts:
        name, metric = verdict["metric"], Metric(verdict["metric"])
        pairs = values(trials[verdict["context"]], verdict, lambda row, name=name: float(row[name]))  # type: ignore[misc]
        logs = [math.log(theirs / ours) for ours, theirs in pairs]
        n, middle, error = len(logs), fmean(logs), stdev(logs) / math.sqrt(len(logs))
        (one,) = [each for each in answer.answers if each.context.label == verdict["context"]]
        width = float(stats.t.ppf(1 - one.rule.alpha / 2, n - 1)) * error
        assert verdict["blocks"] == n
        assert verdict["ratio"] == pytest.approx(math.exp(middle), rel=1e-9)
        assert verdict["low"] == pytest.approx(math.exp(middle - width), rel=1e-7)
        assert verdict["high"] == pytest.approx(math.exp(middle + width), rel=1e-7)
        assert verdict["spread_of_blocks"] == pytest.approx(math.expm1(stdev(logs)), rel=1e-9)
        assert verdict["smallest_difference"] == pytest.approx(math.expm1(width + 0.8416 * error), rel=1e-6)
        means = [geometric_mean(pair[side] for pair in pairs) for side in (0, 1)]
        assert list(verdict["values"].values()) == pytest.approx(means, rel=1e-12)
        # The page shows the same numbers.
        bounds = (math.exp(log) for log in (middle, middle - width, middle + width))
        shown = ratio_texts(*bounds, as_factors=uses_factors(answer.answers))
        assert shown.value in text
        assert shown.interval in text
        assert " → ".join(value_text(metric, value) for value in means) in text
        assert f"±{percent(math.expm1(stdev(logs)))}" in text
        assert percent_above(math.expm1(width + 0.8416 * error)) in text


def test_counters_match_the_trials(answer: StudyAnswer, verdicts: list[dict[str, Any]]) -> None:
    trials, checked = contexts(answer), 0
    for verdict in verdicts:
        for name, reported in verdict["counter_ratios"].items():

            def each(row: Mapping[str, str], name: str = name) -> float:
                return float(row[name]) / (float(row["transactions"]) if row["transactions"] else 1.0)

            pairs = values(trials[verdict["context"]], verdict, each)
            logs = [math.log(theirs / ours) for ours, theirs in pairs]
            per_window = [
                math.log(t / o)
                for o, t in values(
                    trials[verdict["context"]],
                    verdict,
                    lambda row, name=name: float(row[name]),  # type: ignore[misc]
                )
            ]
            # Per transaction, or per window: a level of memory is not per transaction.
            assert any(
                reported["value"] == pytest.approx(math.exp(fmean(found)), rel=1e-9) for found in (logs, per_window)
            )
            checked += 1
    assert checked > 10
