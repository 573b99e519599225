"""What stands beside a verdict: what was asked for always, what differs beyond chance after it."""

import io
from collections.abc import Mapping, Sequence

from rich.console import Console

from pgversus.records.trials import Block
from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.markdown import markdown
from pgversus.report.terminal import WIDEST, print_answer, print_study_answer
from pgversus.report.values import COUNTERS_NOTE, QuantityRow, quantity_rows, study_quantity_rows, untold
from tests.builders import answer, study_answer
from tests.unit.report.cases import CASES, steady

Counters = Mapping[str, tuple[float, float]]


def counted(blocks: Sequence[Block], counters: Counters) -> Answer:
    """The answer of these blocks, in each of which baseline and contender counted this, with a little noise."""
    noise = (1.0, 1.01, 0.99, 1.005)
    changed = []
    for block in blocks:
        factor = noise[block.number % len(noise)]
        trials = {
            arm: trial._replace(counters={name: pair[arm] * (factor if arm else 1) for name, pair in counters.items()})
            for arm, trial in block.trials.items()
        }
        changed.append(block._replace(trials=trials))
    return answer(changed)


def rows(one: Answer, named: Sequence[str] = (), most_sure: int = 8) -> list[QuantityRow]:
    return quantity_rows(one, one.analysis.results[0], named, most_sure)


def test_memory_is_shown_unless_something_else_is_asked_for() -> None:
    one = counted(steady(1.1), {"server_memory_peak_bytes": (100e6, 100e6), "temp_files": (0.0, 0.0)})
    (memory,) = rows(one)
    assert (memory.name, memory.baseline) == ("server_memory_peak_bytes", "100 MB")
    assert memory.interval
    (files,) = rows(one, ["temp_files"])
    assert (files.name, files.baseline, files.change) == ("temp_files per transaction", "0", "")


def test_of_an_operation_nothing_is_counted_for_a_transaction() -> None:
    one = CASES["operation"]()
    blocks = [
        block._replace(trials={arm: trial._replace(counters={"wal_bytes": 5e6}) for arm, trial in block.trials.items()})
        for block in one.blocks
    ]
    (wal,) = rows(answer(blocks, one.comparison), ["wal_bytes"])
    assert (wal.name, wal.baseline) == ("wal_bytes", "5 MB")


def test_counters_that_differ_beyond_chance_follow_the_largest_first_and_none_twice() -> None:
    one = counted(
        steady(1.1),
        {"temp_bytes": (1e6, 2e6), "wal_bytes": (1e6, 5e6), "buffers_hit": (1e6, 1e6), "wal_records": (5, 6)},
    )
    names = [row.name.partition(" ")[0] for row in rows(one)]
    assert names == ["wal_bytes", "temp_bytes", "wal_records"]
    assert [row.name.partition(" ")[0] for row in rows(one, ["temp_bytes"])] == [
        "temp_bytes",
        "wal_bytes",
        "wal_records",
    ]
    assert len(rows(one, most_sure=1)) == 1


def test_what_happened_on_one_side_only_comes_first_and_has_no_change() -> None:
    first, second = rows(counted(steady(1.1), {"temp_files": (0.0, 50_000.0), "buffers_hit": (1000.0, 90_000.0)}))
    assert (first.name, first.baseline, first.contender) == ("temp_files per transaction", "0", "50")
    assert (first.change, first.interval) == ("", "")
    assert second.name == "buffers_hit per transaction"


def test_what_the_host_did_is_shown_only_where_it_is_asked_for() -> None:
    one = counted(steady(1.1), {"host_cpu_s": (1.0, 9.0)})
    assert rows(one) == []
    assert len(rows(one, ["host_cpu_s"])) == 1


def test_of_what_vacuum_says_the_same_is_not_shown_under_several_names() -> None:
    alike = ["vacuum_wal_bytes", "vacuum_wal_records", "vacuum_elapsed_s", "vacuum_buffers_read", "vacuum_cpu_user_s"]
    found = ["wal_bytes", "vacuum_index_scans", "vacuum_buffers_dirtied", *alike]
    one = counted(steady(1.1), dict.fromkeys(found, (1e6, 5e6)))
    names = {row.name.partition(" ")[0] for row in rows(one)}
    assert names == {"wal_bytes", "vacuum_index_scans", "vacuum_buffers_dirtied"}
    assert [row.name for row in rows(one, alike)][: len(alike)] == alike


def test_metrics_are_shown_with_their_interval_but_not_the_judged_one_again() -> None:
    one = CASES["faster"]()
    (p95,) = rows(one, ["latency_p95", "tps"])
    assert p95.name == "latency_p95"
    assert p95.baseline.endswith("ms")
    assert p95.interval


def test_what_one_arm_does_not_tell_is_no_row() -> None:
    assert rows(CASES["faster"](), ["wal_bytes", "server_memory_peak_bytes"]) == []


def test_what_a_study_names_and_nobody_told_is_said_once_with_who_did_not() -> None:
    one = counted(steady(1.1), {"wal_bytes": (1e6, 1e6)})
    named = ("tps", "latency_p95", "wal_bytes", "client_io_reads", "disk_reads")
    study = study_answer([one, one], metrics=named)
    assert untold(study) == ["client_io_reads: not reported by 16.12, 17.8", "disk_reads: not reported by this host"]
    assert "not measured: client\\_io\\_reads: not reported by 16.12, 17.8" in markdown(study)


def test_of_a_quantity_that_one_side_alone_told_the_other_side_is_named() -> None:
    one = counted(steady(1.1), {})
    blocks = [
        block._replace(trials={0: block.trials[0], 1: block.trials[1]._replace(counters={"client_io_reads": 1.0})})
        for block in one.blocks
    ]
    assert untold(study_answer([answer(blocks)], metrics=["client_io_reads"])) == [
        "client_io_reads: not reported by 16.12"
    ]


def test_of_a_study_without_a_block_nobody_is_blamed() -> None:
    study = study_answer([CASES["interrupted"]()], metrics=["wal_bytes"])
    assert untold(study) == ["wal_bytes: no values were recorded"]


def test_a_study_has_the_rows_of_each_verdict_in_its_order() -> None:
    one = counted(steady(1.1), {"server_memory_peak_bytes": (1e6, 2e6)})
    study = study_answer([one, one], metrics=("latency_mean", "server_memory_peak_bytes"))
    placed = study_quantity_rows(study)
    assert [(row.context, row.quantity.name) for row in placed] == [
        ("workload=w1 load=c4", "latency_mean"),
        ("workload=w1 load=c4", "server_memory_peak_bytes"),
        ("workload=w2 load=c4", "latency_mean"),
        ("workload=w2 load=c4", "server_memory_peak_bytes"),
    ]


def forms(one: Answer) -> list[str]:
    """One comparison and a study of it on a terminal, and the study as Markdown."""
    study: StudyAnswer = study_answer([one, one])
    single, whole = io.StringIO(), io.StringIO()
    print_answer(one, Console(file=single, width=WIDEST))
    print_study_answer(study, Console(file=whole, width=WIDEST))
    return [single.getvalue(), whole.getvalue(), markdown(study)]


def test_how_to_read_the_counters_stands_once_and_only_below_them() -> None:
    for text in forms(counted(steady(1.1), {"server_memory_peak_bytes": (3660.0, 2930.0)})):
        assert text.count(COUNTERS_NOTE) == 1
        assert text.index("3.66 kB") < text.index(COUNTERS_NOTE)
    assert not any(COUNTERS_NOTE in text for text in forms(counted(steady(1.1), {})))
