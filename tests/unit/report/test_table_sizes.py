"""Sizes are shown only if builds make the same rows larger or smaller."""

from collections.abc import Mapping
from dataclasses import replace

from pgversus.answers.answer import Answer
from pgversus.report.arm_tables import SizeTable, size_tables
from tests.builders import answer, comparison, rate_block, study_answer

LABELS = ("4 kB", "8 kB", "16 kB")


def sized(*sizes: Mapping[str, int], labels: tuple[str, ...] = LABELS) -> Answer:
    blocks = [rate_block(number, *([1000.0] * len(labels))) for number in (1, 2)]
    one = answer(blocks, comparison(labels))
    return replace(one, arms=tuple(replace(arm, sizes=of) for arm, of in zip(one.arms, sizes, strict=True)))


def test_relations_of_different_sizes_are_shown_for_every_arm() -> None:
    same = {"public.same": 8_000_000}
    one = sized(
        {"public.t": 1_000_000, "app.t_pkey": 200_000, **same},
        {"public.t": 1_000_000, "app.t_pkey": 250_000, **same},
        {"public.t": 740_000, **same},
    )
    assert size_tables([one]) == [
        SizeTable(
            arms=LABELS,
            rows=(("t", "1 MB", "1 MB", "740 kB"), ("app.t_pkey", "200 kB", "250 kB", "")),
        )
    ]


def test_a_difference_of_a_page_is_ignored() -> None:
    assert size_tables([sized({"t": 1_000_000}, {"t": 1_004_999}, {"t": 995_001})]) == []
    assert len(size_tables([sized({"t": 1_000_000}, {"t": 1_000_000}, {"t": 1_005_001})])) == 1


def test_servers_that_report_no_sizes_have_no_table() -> None:
    assert size_tables([sized({}, {"t": 1}, {"t": 2})]) == []
    assert size_tables([sized({"t": 1}, {}, {})]) == []
    assert size_tables([]) == []


def test_the_same_data_of_several_contexts_is_shown_once() -> None:
    small, large = ({"t": 1000}, {"t": 1000}, {"t": 2000}), ({"t": 3000}, {"t": 3000}, {"t": 6000})
    answers = study_answer([sized(*small), sized(*large), sized(*small)]).answers
    found = size_tables(answers)
    assert [table.rows[0][3] for table in found] == ["2 kB", "6 kB"]
    others = sized(*small, labels=("a", "b", "c"))
    assert len(size_tables([*answers, others])) == 3
