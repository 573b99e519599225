"""Quantities next to a verdict: requested ones always, followed by those that differ significantly."""

import io
from collections.abc import Mapping, Sequence

import pytest
from rich.console import Console

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.records.trials import Block
from pgversus.report.console import WIDEST
from pgversus.report.json_document import document
from pgversus.report.markdown import markdown
from pgversus.report.terminal import print_answer, print_study_answer
from pgversus.report.tidy_tables import trial_table
from pgversus.report.values import (
    COUNTERS_NOTE,
    QuantityRow,
    quantity_rows,
    study_quantity_rows,
    unreported_metrics,
    uses_factors,
)
from pgversus.study.counters import COUNTERS
from tests.builders import answer, comparison, operation_block, rate_block, study_answer, vacuum
from tests.unit.report.cases import CASES, steady

Counters = Mapping[str, tuple[float, float]]


def counted(blocks: Sequence[Block], counters: Counters, block_bytes: Sequence[int] = ()) -> Answer:
    """Return the answer of these blocks, with these counters of baseline and contender and a little noise."""
    noise = (1.0, 1.01, 0.99, 1.005)
    changed = []
    for block in blocks:
        factor = noise[block.number % len(noise)]
        trials = {
            arm: trial._replace(counters={name: pair[arm] * (factor if arm else 1) for name, pair in counters.items()})
            for arm, trial in block.trials.items()
        }
        changed.append(block._replace(trials=trials))
    return answer(changed, block_bytes=block_bytes)


def rows(one: Answer, named: Sequence[str] = (), most_sure: int = 8) -> list[QuantityRow]:
    return quantity_rows(one, one.analysis.results[0], named, most_sure, as_factors=uses_factors([one]))


def labels(one: Answer, named: Sequence[str] = ()) -> list[str]:
    """Return the labels of the rows, without `per transaction`."""
    return [row.label.removesuffix(" per transaction") for row in rows(one, named)]


def test_memory_is_shown_unless_other_quantities_are_requested() -> None:
    one = counted(steady(1.1), {"server_memory_peak_bytes": (100e6, 100e6), "temp_files": (0.0, 0.0)})
    (memory,) = rows(one)
    assert (memory.label, memory.baseline) == ("peak server memory", "100 MB")
    assert memory.interval
    (files,) = rows(one, ["temp_files"])
    assert (files.label, files.baseline, files.change) == ("temporary files per transaction", "0", "")


def test_counters_of_an_operation_are_not_per_transaction() -> None:
    one = CASES["operation"]()
    blocks = [
        block._replace(trials={arm: trial._replace(counters={"wal_bytes": 5e6}) for arm, trial in block.trials.items()})
        for block in one.blocks
    ]
    (wal,) = rows(answer(blocks, one.comparison), ["wal_bytes"])
    assert (wal.label, wal.baseline) == ("WAL generated", "5 MB")


def test_counters_that_differ_significantly_follow_largest_first_without_duplicates() -> None:
    one = counted(
        steady(1.1),
        {"temp_bytes": (1e6, 2e6), "wal_bytes": (1e6, 5e6), "buffers_hit": (1e6, 1e6), "wal_records": (5, 6)},
    )
    assert labels(one) == ["WAL generated", "temporary file size", "WAL records"]
    assert labels(one, ["temp_bytes"]) == ["temporary file size", "WAL generated", "WAL records"]
    assert len(rows(one, most_sure=1)) == 1


def test_a_counter_that_is_zero_on_one_arm_comes_first_without_a_change() -> None:
    first, second = rows(counted(steady(1.1), {"temp_files": (0.0, 50_000.0), "buffers_hit": (1000.0, 90_000.0)}))
    assert (first.label, first.baseline, first.contender) == ("temporary files per transaction", "0", "50")
    assert (first.change, first.interval) == ("", "")
    assert second.label == "shared buffer hits per transaction"


def test_host_counters_are_shown_only_if_requested() -> None:
    one = counted(steady(1.1), {"host_cpu_s": (1.0, 9.0)})
    assert rows(one) == []
    assert len(rows(one, ["host_cpu_s"])) == 1


def test_vacuum_counters_that_duplicate_other_counters_are_not_shown() -> None:
    alike = ["vacuum_wal_bytes", "vacuum_wal_records", "vacuum_elapsed_s", "vacuum_buffers_read", "vacuum_cpu_user_s"]
    found = ["wal_bytes", "vacuum_index_scans", "vacuum_buffers_dirtied", *alike]
    one = counted(steady(1.1), dict.fromkeys(found, (1e6, 5e6)))
    assert set(labels(one)) == {COUNTERS[name].label for name in found if name not in alike}
    assert labels(one, alike)[: len(alike)] == [COUNTERS[name].label for name in alike]


def test_metrics_are_shown_with_their_interval_except_the_judged_one() -> None:
    one = CASES["faster"]()
    (p95,) = rows(one, ["latency_p95", "tps"])
    assert p95.label == "p95 latency"
    assert p95.baseline.endswith("ms")
    assert p95.interval


def test_an_unreported_quantity_has_no_row() -> None:
    assert rows(CASES["faster"](), ["wal_bytes", "server_memory_peak_bytes"]) == []


def test_a_requested_quantity_that_was_not_reported_is_listed_once_with_its_servers() -> None:
    one = counted(steady(1.1), {"wal_bytes": (1e6, 1e6)})
    named = ("tps", "latency_p95", "wal_bytes", "client_io_reads", "disk_reads")
    study = study_answer([one, one], metrics=named)
    assert unreported_metrics(study) == [
        "client_io_reads: not reported by 16.12, 17.8",
        "disk_reads: not reported by this host",
    ]
    assert "not measured: client\\_io\\_reads: not reported by 16.12, 17.8" in markdown(study)


def test_the_arm_that_did_not_report_a_quantity_is_named() -> None:
    one = counted(steady(1.1), {})
    blocks = [
        block._replace(trials={0: block.trials[0], 1: block.trials[1]._replace(counters={"client_io_reads": 1.0})})
        for block in one.blocks
    ]
    assert unreported_metrics(study_answer([answer(blocks)], metrics=["client_io_reads"])) == [
        "client_io_reads: not reported by 16.12"
    ]


def test_a_server_that_does_not_report_a_counter_is_named_once_although_other_verdicts_show_it() -> None:
    known = {"client_io_reads": (1e6, 2e6)}
    both = counted(steady(1.1), known)
    blocks = [
        block._replace(trials={**block.trials, 0: block.trials[0]._replace(counters={})}) for block in both.blocks
    ]
    study = study_answer([both, answer(blocks), answer(blocks)], metrics=["client_io_reads"])
    assert unreported_metrics(study) == ["client_io_reads: not reported by 16.12"]
    assert len(study_quantity_rows(study)) == 1
    for text in (terminal_text(study), markdown(study).replace("\\", "")):
        assert text.count("client_io_reads: not reported by 16.12") == 1
    assert unreported_metrics(study_answer([both, both], metrics=["client_io_reads"])) == []


def test_a_host_counter_that_one_arm_has_is_missing_on_the_other() -> None:
    one = counted(steady(1.1), {"server_cpu_user_s": (1.0, 1.0)})
    blocks = [block._replace(trials={**block.trials, 1: block.trials[1]._replace(counters={})}) for block in one.blocks]
    assert unreported_metrics(study_answer([answer(blocks)], metrics=["server_cpu_user_s"])) == [
        "server_cpu_user_s: not reported by 17.8"
    ]


def test_counters_of_operations_are_not_missing_on_loads() -> None:
    operation = vacuum()
    vacuumed = [operation_block(number, operation, (1.0,), (0.9,)) for number in range(1, 5)]
    reported = [
        block._replace(
            trials={arm: trial._replace(counters={"vacuum_index_scans": 1.0}) for arm, trial in block.trials.items()}
        )
        for block in vacuumed
    ]
    study = study_answer(
        [answer(steady(1.1)), answer(reported, comparison(workload=operation))],
        metrics=["vacuum_index_scans", "disturbed_windows"],
    )
    assert unreported_metrics(study) == []


def test_a_study_without_blocks_names_no_server_for_missing_values() -> None:
    study = study_answer([CASES["interrupted"]()], metrics=["wal_bytes"])
    assert unreported_metrics(study) == ["wal_bytes: no values were recorded"]


def test_a_study_has_the_rows_of_each_verdict_in_order() -> None:
    one = counted(steady(1.1), {"server_memory_peak_bytes": (1e6, 2e6)})
    study = study_answer([one, one], metrics=("latency_mean", "server_memory_peak_bytes"))
    placed = study_quantity_rows(study)
    assert [(row.context, row.quantity.label) for row in placed] == [
        ("workload=w1 load=c4", "mean latency"),
        ("workload=w1 load=c4", "peak server memory"),
        ("workload=w2 load=c4", "mean latency"),
        ("workload=w2 load=c4", "peak server memory"),
    ]


def terminal_text(study: StudyAnswer) -> str:
    whole = io.StringIO()
    print_study_answer(study, Console(file=whole, width=WIDEST))
    return whole.getvalue()


def forms(one: Answer) -> list[str]:
    """Return one comparison and a study of it as on a terminal, and the study as Markdown."""
    study: StudyAnswer = study_answer([one, one])
    single = io.StringIO()
    print_answer(one, Console(file=single, width=WIDEST))
    return [single.getvalue(), terminal_text(study), markdown(study)]


def test_the_note_on_counters_appears_once_and_only_below_them() -> None:
    for text in forms(counted(steady(1.1), {"server_memory_peak_bytes": (3660.0, 2930.0)})):
        assert text.count(COUNTERS_NOTE) == 1
        assert text.index("3.66 kB") < text.index(COUNTERS_NOTE)
    assert not any(COUNTERS_NOTE in text for text in forms(counted(steady(1.1), {})))


EQUAL_BYTES = {"buffers_read": (40_000.0, 10_000.0), "buffers_hit": (80_000.0, 10_000.0)}


def test_blocks_of_different_sizes_are_shown_in_bytes() -> None:
    one = counted(steady(1.1), EQUAL_BYTES, (8192, 32768))
    (hits,) = rows(one)
    assert (hits.label, hits.baseline, hits.contender, hits.change) == (
        "shared buffer hits in bytes per transaction",
        "655 kB",
        "328 kB",
        "-50.0 %",
    )
    (reads,) = [row for row in rows(one, ["buffers_read"]) if row.label != hits.label]
    assert (reads.label, reads.baseline) == ("pages read from the operating system in bytes per transaction", "328 kB")
    assert unreported_metrics(study_answer([one], metrics=["buffers_read"])) == []
    assert [row.label for row in rows(counted(steady(1.1), EQUAL_BYTES, (32768, 32768)))] == [
        "shared buffer hits per transaction",
        "pages read from the operating system per transaction",
    ]


@pytest.mark.parametrize(("transactions", "known"), [(9, []), (100, ["p50", "p95"]), (1000, ["p50", "p95", "p99"])])
def test_a_trial_has_only_percentiles_with_enough_transactions(transactions: int, known: list[str]) -> None:
    table = trial_table(study_answer([answer([rate_block(1, 100.0, 110.0, transactions=transactions)])]))
    for row in table.rows:
        assert [name for name in ("p50", "p95", "p99") if row[table.columns.index(f"latency_{name}_s")]] == known


def test_trials_and_the_document_have_bytes_for_blocks_of_different_sizes() -> None:
    one = counted(steady(1.1), EQUAL_BYTES, (8192, 32768))
    table = trial_table(study_answer([one]))
    assert "buffers_hit" not in table.columns
    place, arm = table.columns.index("buffers_read_bytes"), table.columns.index("role")
    assert [row[place] for row in table.rows if row[arm] == "baseline"] == [40_000.0 * 8192] * len(one.blocks)
    found = document(one)
    assert found["arms"][1]["counters"]["buffers_hit_bytes"]["unit"] == "bytes"
    assert set(found["verdicts"][0]["counter_ratios"]) == {"buffers_read_bytes", "buffers_hit_bytes"}
