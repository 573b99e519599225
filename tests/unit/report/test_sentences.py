import math
import re
from dataclasses import replace

import pytest

from pgversus.answers.answer import Answer, Caveat, between
from pgversus.records.plans import StatementName
from pgversus.records.trials import Block
from pgversus.report.caveats import caveat_text
from pgversus.report.sentences import answer_sentences
from pgversus.stats.confidence import Verdict
from pgversus.study.design import Design, StopReason
from pgversus.study.metrics import Metric
from tests.builders import answer, comparison, judged_by, latency_block, rate_block
from tests.unit.report import cases


def sentence(of: Answer) -> str:
    (only,) = answer_sentences(of)
    return only


def verdict(of: Answer) -> Verdict:
    return of.analysis.result_of(1).verdict


def test_faster_states_size_interval_and_confidence() -> None:
    text = sentence(cases.faster())
    assert text.startswith("17.8 is faster than 16.12: +10.")
    assert " tps (95 % CI +" in text
    assert "95 %" in text
    assert text.endswith("6 blocks, 4 min 24 s.")


def test_slower_by_more_than_half_is_still_a_percentage() -> None:
    assert sentence(cases.slower_by_half()).startswith("17.8 is slower than 16.12: -60.0 % tps (95 % CI -60.")


def test_a_certain_direction_of_uncertain_size_is_stated() -> None:
    of = cases.faster_of_open_size()
    assert verdict(of) is Verdict.FASTER
    (flags,) = re.findall(
        r"The direction is known, but the size is not: it may be below the margin of 2\.0 %\. "
        r"To measure the size, run again with (.*) \(about .*\)\.$",
        sentence(of),
    )
    assert flags.startswith("--precision 1%")
    assert "The direction is known" not in sentence(cases.faster())


def around(middle: float, spread: float, blocks: int = 8, **design: object) -> Answer:
    """Return an answer whose log ratios alternate by `spread` around `middle`."""
    requested = comparison(design=replace(Design(seed=7), **design))  # type: ignore[arg-type]
    ratios = [math.exp(middle + spread * (-1) ** n) for n in range(1, blocks + 1)]
    stopped = StopReason.BLOCKS if requested.design.fixed_blocks else StopReason.BUDGET
    return answer(
        [rate_block(n, 1000.0, 1000.0 * ratio) for n, ratio in enumerate(ratios, 1)], requested, stopped=stopped
    )


WIDE = "The direction is known, but the size is not."
# The half width after 8 blocks is 1.58 times the spread of these blocks.


@pytest.mark.parametrize(
    ("middle", "spread", "is_wide"),
    [
        (0.3, 0.08, True),
        (-0.3, 0.08, True),
        (0.3, 0.05, False),
        (-0.3, 0.05, False),
        (1.5, 0.4, True),
        (1.5, 0.2, False),
    ],
)
def test_an_interval_is_wide_if_one_end_is_more_than_twice_the_other(
    middle: float, spread: float, *, is_wide: bool
) -> None:
    of = around(middle, spread)
    bounds = of.analysis.result_of(1).interval
    near, far = sorted((abs(bounds.low), abs(bounds.high)))
    assert near > of.comparison.design.log_margin
    assert (far > 2 * near) is is_wide
    assert (WIDE in sentence(of)) is is_wide


@pytest.mark.parametrize("middle", [0.3, -0.3, 0.06, 1.5])
def test_the_advised_precision_is_finer_than_the_interval_and_no_finer_than_its_size_requires(middle: float) -> None:
    of = around(middle, 0.27 * abs(middle))
    (advised,) = re.findall(r"--precision ([0-9.]+)%", sentence(of))
    log = math.log1p(float(advised) / 100)
    assert log < of.analysis.result_of(1).interval.half_width
    assert abs(middle) / 6 < log <= 1.1 * abs(middle) / 3


def test_the_advice_fits_the_kind_of_run() -> None:
    file = replace(around(0.3, 0.08), is_from_file=True)
    assert sentence(file).endswith('set precision = "10%" in [design] and run again with --new.')
    fixed = sentence(around(0.3, 0.15, fixed_blocks=8))
    assert " run again with --precision 10% --budget " in fixed
    assert " instead of --blocks (about " in fixed
    short = sentence(around(0.3, 0.1, max_blocks=10))
    assert re.search(r"--precision 10% --max-blocks \d\d", short)


def test_no_precision_is_advised_that_this_host_cannot_reach() -> None:
    assert sentence(around(0.3, 0.6, blocks=100)).endswith(WIDE)


def test_a_missed_precision_is_stated_with_the_width_that_was_reached() -> None:
    text = sentence(cases.imprecise())
    assert "The precision of ±1.0 % was not reached: the interval is ±2.3 %." in text
    assert re.search(r"Reaching the precision takes about .* more\. Run again with --budget \d+m\.$", text)
    assert "--precision" not in text


@pytest.mark.parametrize(("middle", "verdict_word"), [(0.0, "Undecided"), (0.001, "No difference"), (-0.3, "slower")])
def test_every_verdict_states_a_missed_precision(middle: float, verdict_word: str) -> None:
    spread = 0.005 if verdict_word == "No difference" else 0.05
    text = sentence(around(middle, spread, precision=0.001))
    assert verdict_word in text
    assert "The precision of ±0.10 % was not reached: the interval is ±" in text


def test_no_advice_on_the_size_follows_a_reached_precision() -> None:
    text = sentence(around(0.03, 0.01, precision=0.03))
    assert "faster" in text
    assert text.endswith("8 blocks, 5 min 52 s.")
    undecided = sentence(around(0.01, 0.01, precision=0.03))
    assert undecided.endswith(
        "The precision of ±3.0 % was reached without a verdict. Specify a smaller precision, or a larger margin, to "
        "get a verdict."
    )


def test_a_precision_that_is_too_fine_for_the_host_is_reported_as_such() -> None:
    text = sentence(around(0.3, 0.3, precision=0.001))
    assert text.endswith(
        "This host is currently too noisy for ±0.10 %. Stop other jobs, use a quieter machine, or use a larger "
        "value of --precision."
    )


def test_a_study_that_ends_before_its_precision_states_the_blocks_it_needs() -> None:
    of = replace(around(0.3, 0.05, precision=0.05, max_blocks=9), is_from_file=True)
    assert re.search(r"Reaching the precision takes about \d+ blocks, but this study ends after 9\.$", sentence(of))


def test_an_unknown_size_over_many_powers_of_ten_is_stated() -> None:
    of = answer([rate_block(n, 1.0, 1e6 * 30.0 ** (-1) ** n) for n in range(1, 9)])
    assert verdict(of) is Verdict.FASTER
    assert sentence(of).startswith(
        "17.8 is faster than 16.12 (95 % confidence). The size of the difference is unknown. 8 blocks"
    )


def test_equivalent_states_the_margin_and_the_interval() -> None:
    text = sentence(cases.equivalent())
    assert text.startswith("No difference that matters between 17.8 and 16.12: tps ")
    assert " (95 % CI), within the margin of ±2.0 %." in text


def test_undecided_states_the_excluded_size_and_the_blocks_needed() -> None:
    text = sentence(cases.undecided())
    assert text.startswith("Undecided: 17.8 vs 16.12, tps ")
    assert "If there is a difference, it is below " in text
    assert "A verdict takes about " in text
    assert "Run again with --budget " in text


def of_a_study(blocks: list[Block], *, max_blocks: int = 100, metric: Metric = Metric.TPS) -> str:
    """Return the sentence for a comparison that is one of many contexts of a study file."""
    requested = comparison(design=replace(judged_by(metric), max_blocks=max_blocks))
    return sentence(answer(blocks, requested, stopped=StopReason.BUDGET, study_wall_s=6000.0, is_from_file=True))


def test_the_advised_budget_covers_the_time_of_all_contexts() -> None:
    (minutes,) = re.findall(r"Run again with --budget (\d+)m\.", of_a_study(cases.noisy(0.02, blocks=8)))
    assert int(minutes) > 6000 * 1.2 / 60


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (of_a_study(cases.noisy(0.9, blocks=8)), "Stop other jobs or use a quieter machine."),
        (of_a_study(cases.noisy(0.02, blocks=8), max_blocks=9), "this study ends after 9."),
        (of_a_study(cases.noisy(0.02, blocks=8), max_blocks=8), "this study ends after 8."),
        (
            of_a_study([latency_block(n, [1000] * 50, [900] * 50) for n in range(1, 9)], metric=Metric.LATENCY_P95),
            "Use more clients or longer windows.",
        ),
    ],
)
def test_a_study_file_gets_no_advice_to_use_unavailable_flags(text: str, words: str) -> None:
    assert text.endswith(words)
    assert not re.search("--(max-blocks|window|margin)", text)


def test_a_hopelessly_noisy_host_is_reported_instead_of_more_time() -> None:
    text = sentence(cases.hopeless())
    assert "This host is currently too noisy for ±2.0 %" in text
    assert "--margin" in text
    assert "--budget" not in text


@pytest.mark.parametrize(
    ("stopped", "words"),
    [
        (StopReason.BUDGET, "Stopped by the budget after {}"),
        (StopReason.BLOCKS, "The block limit was reached after {}"),
        (StopReason.INTERRUPTED, "Interrupted after {}"),
        (StopReason.FAILED, "Stopped after {} because trials failed"),
        (StopReason.DECIDED, "Stopped after {}"),
    ],
)
def test_too_few_blocks_state_why_the_run_stopped_and_when_the_first_check_is(stopped: StopReason, words: str) -> None:
    text = sentence(answer(cases.steady(1.1, blocks=2), stopped=stopped))
    assert text.startswith(
        f"Undecided: 17.8 vs 16.12. {words.format('2 blocks, 1 min 28 s')}. "
        "The first check needs 4 blocks (about 2 min 56 s)."
    )


def test_without_blocks_no_time_is_estimated() -> None:
    assert sentence(cases.interrupted()) == (
        "Undecided: 17.8 vs 16.12. Interrupted after 0 blocks, 0 s. The first check needs 4 blocks. "
        "Run the comparison again without interrupting it."
    )


def test_one_block_is_singular() -> None:
    assert "1 block, 44 s" in sentence(answer(cases.steady(1.1, blocks=1), stopped=StopReason.BUDGET))


def test_an_interrupted_study_is_advised_to_resume() -> None:
    text = sentence(answer(cases.noisy(0.02, blocks=8), stopped=StopReason.INTERRUPTED, is_from_file=True))
    assert text.endswith("8 blocks, 5 min 52 s. Run the same command again to resume.")


def test_more_blocks_are_advised_if_their_number_is_fixed() -> None:
    assert "6 blocks, 4 min 24 s. Run the comparison again with more blocks" in sentence(cases.fixed())


def test_undecided_contenders_of_one_comparison_have_one_budget() -> None:
    rates = cases.noisy(0.02, blocks=8)
    blocks = [block._replace(trials={**block.trials, 2: block.trials[1]}) for block in rates]
    of = answer(blocks, comparison(("16.12", "17.8", "18.6")), stopped=StopReason.BUDGET)
    first, second, advice = answer_sentences(of)
    assert first.startswith("Undecided: 17.8")
    assert second.startswith("Undecided: 18.6")
    assert re.fullmatch(
        r"2 verdicts are undecided\. The verdicts need about .* more in total\. Run again with --budget \d+m\.", advice
    )


def test_an_invalid_result_applies_only_to_its_contender() -> None:
    first, second = answer_sentences(cases.invalid())
    assert first.startswith("Invalid: 17.8 vs 16.12.")
    assert "There is no result" in first
    assert second.startswith("18.6 is slower than 16.12: ")


def test_a_grave_caveat_is_announced_before_the_sentence() -> None:
    assert sentence(cases.mixed_builds()).startswith("CHECK the caveats below. 17.8 is faster")


def test_blocks_that_the_last_run_could_not_resume_are_announced() -> None:
    of = answer(cases.steady(1.1), caveats=[Caveat(slug="not-resumed", values={"failure": "other rows"})])
    assert sentence(of).startswith("CHECK the caveats below. ")


def test_a_minor_caveat_is_not_announced() -> None:
    light = answer(cases.steady(1.1), caveats=[Caveat(slug="not-restarted", values={"arms": ["16.12"]})])
    assert sentence(light) == sentence(cases.faster())


def test_a_grave_caveat_of_another_contender_is_not_announced() -> None:
    assert not any(text.startswith("CHECK") for text in answer_sentences(cases.invalid()))


def test_higher_latency_is_slower() -> None:
    text = sentence(cases.tail_latency())
    assert text.startswith("17.8 is slower than 16.12: +")
    assert " p95 latency (95 % CI " in text


def test_different_rows_are_reported_before_any_speed() -> None:
    one, name = cases.faster(), StatementName(script="q.sql", number=1, text="SELECT 1")
    caveat = between("other-rows", one.comparison, one.comparison.arms[1], statements=[name])
    (text,) = answer_sentences(replace(one, caveats=(caveat,)))
    assert text.startswith(f"{caveat_text(caveat)}. CHECK the caveats below. 17.8 is faster")
