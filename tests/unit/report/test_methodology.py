from dataclasses import replace

import pytest

from pgversus.answers.answer import Answer
from pgversus.report.methodology import comparison_lines
from pgversus.report.windows import windows_text
from pgversus.study.design import Design, WindowKind
from pgversus.study.workload import PgbenchWorkload, Script
from tests.builders import answer, comparison, open_loop, rate_blocks
from tests.unit.report.cases import CASES

MIRRORED = "in mirrored order (A B B A)"
EIGHT = ("8 windows of 20 ms in mirrored order (A B B A)", "8 windows of 30 ms in mirrored order (A B B A)")
SELECT = Script(name="select-only")
FILE = Script(name="my query.sql", text="SELECT :scale")


def test_the_precision_is_shown_next_to_the_margin() -> None:
    (line,) = (line for line in comparison_lines(CASES["imprecise"]()) if "margin" in line)
    assert "margin ±2.0 %, precision ±1.0 %, seed 7" in line
    assert not any("precision" in line for line in comparison_lines(CASES["faster"]()))


@pytest.mark.parametrize(
    ("workload", "shown"),
    [
        (PgbenchWorkload(scripts=(SELECT,), scale=10), "-c 1 -j 1 -M simple -b select-only"),
        (PgbenchWorkload(scripts=(FILE,), scale=10), "-c 1 -j 1 -M simple -f 'my query.sql' -s 10"),
        (open_loop(), "-c 8 -j 2 -M prepared -f lag.sql@2 -b tpcb-like -D rows=1000 -R 50"),
        (
            PgbenchWorkload(scripts=(SELECT,), variables=(("a", "b c"),)),
            "-c 1 -j 1 -M simple -b select-only -D 'a=b c'",
        ),
    ],
)
def test_the_load_is_shown_as_a_pgbench_command(workload: PgbenchWorkload, shown: str) -> None:
    lines = comparison_lines(answer([], comparison(workload=workload)))
    assert lines[0] == f"pgbench -n -T 1 {shown} (pgbench 18.6)"


def test_an_operation_is_shown_with_its_commands_and_preparation() -> None:
    lines = comparison_lines(CASES["steps"]())
    assert lines[:3] == [
        "timed: VACUUM pgbench_accounts;",
        "timed: pg_dump -f db.sql",
        "prepared by /studies/dirty.sql with dead=70",
    ]
    assert any(line.startswith("6 blocks of one operation on a fresh copy per arm") for line in lines)
    assert not any("pgbench 18.6" in line for line in lines)


@pytest.mark.parametrize(
    ("way", "shown"), [("reflink", "data copied by reflink"), ("copy", "data copied in full"), (None, "ext4")]
)
def test_the_method_of_copying_data_is_shown_if_known(way: str | None, shown: str) -> None:
    measured = replace(answer([]), host={"file_system": "ext4", "copies": way})
    (line,) = (line for line in comparison_lines(measured) if line.startswith("host: "))
    assert line.endswith(shown)


def short(seconds: float, counts: set[int]) -> Answer:
    """Return an answer with blocks of these numbers of windows."""
    design = Design(window_kind=WindowKind.SLICE, window_s=seconds, rounds=max(counts))
    blocks = [
        block._replace(trials={arm: trial._replace(window_count=count) for arm, trial in block.trials.items()})
        for count in counts
        for block in rate_blocks([100.0], [200.0])
    ]
    return answer(blocks, comparison(design=design))


@pytest.mark.parametrize(
    ("windows", "words"),
    [
        ([(0.02, {8})], "8 windows of 20 ms in mirrored order (A B B A)"),
        ([(0.02, {1})], "1 window of 20 ms"),
        ([(0.02, {4, 8})], "4 to 8 windows of 20 ms in mirrored order (A B B A)"),
        (
            [(0.02, {8}), (0.03, {12})],
            "8 windows of 20 ms in mirrored order (A B B A) or 12 windows of 30 ms in mirrored order (A B B A)",
        ),
        ([(0.02, {8}), (0.03, {8}), (0.05, {8})], "8 windows of 20 ms to 50 ms in mirrored order (A B B A)"),
        ([(0.02, {8}), (0.03, {4}), (0.05, {8})], "4 to 8 windows of 20 ms to 50 ms in mirrored order (A B B A)"),
        (
            [(0.02, {8}), (0.03, {8}), (0.05, {1})],
            f"8 windows of 20 ms {MIRRORED} or 8 windows of 30 ms {MIRRORED} or 1 window of 50 ms",
        ),
    ],
)
def test_many_lengths_of_windows_are_shown_as_a_range(windows: list[tuple[float, set[int]]], words: str) -> None:
    assert windows_text(short(seconds, counts) for seconds, counts in windows) == words
