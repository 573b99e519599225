"""Writing results: a block is on disk, whole, before the next one begins."""

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from pgversus.errors import StoreError
from pgversus.stats.trials import Block, FailedTrial, Trial
from pgversus.store.codec import CONTEXT, PREPARATION, ContextFact
from pgversus.store.counters import counter_names, counters_text
from pgversus.store.files import FILE_NAME, SCHEMA_VERSION, check_folder, holds_results, unwritable
from pgversus.study.preparation import Preparation
from pgversus.study.study import Context

_QUANTILE_COLUMNS = {0.50: "latency_p50_s", 0.95: "latency_p95_s", 0.99: "latency_p99_s"}


class Results:
    """The results folder of one study while it runs; nobody else writes to it."""

    def __init__(self, folder: Path) -> None:
        """Open the file in this folder, or make both; StoreError when that cannot be, or when another run has it."""
        self.folder = folder
        check_folder(folder, may_hold_results=True)
        is_new = not holds_results(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(folder / "lock")
            self._lock.acquire(blocking=False)
        except Timeout as error:
            raise _in_use(folder) from error
        except OSError as error:
            raise unwritable(folder, error.strerror or error) from error
        try:
            self._database = sqlite3.connect(folder / FILE_NAME, isolation_level=None)
            self._database.execute("PRAGMA journal_mode = wal")
            self._database.execute("PRAGMA synchronous = full")
            self._database.execute("PRAGMA foreign_keys = on")
            if is_new:
                self._make_tables()
            self._known = {name: at for at, name in enumerate(counter_names(self._database))}
        except sqlite3.Error as error:
            self._lock.release()
            raise unwritable(folder, error) from error

    def close(self) -> None:
        """Close the file, so that it is one file again (no -wal beside it)."""
        self._database.close()
        self._lock.release()
        (self.folder / "lock").unlink(missing_ok=True)

    def add_fact(self, name: str, value: Any) -> None:
        """Keep something that was asked, decided or found, as JSON."""
        self._write([("fact", {"name": name, "recorded_at": _now(), "value": json.dumps(value)})])

    def add_study(self, fact: Mapping[str, Any], contexts: Sequence[Context]) -> None:
        """Keep the question and all its contexts, in one transaction: a study is there whole or not at all."""
        rows: list[tuple[str, dict[str, Any]]] = [
            ("fact", {"name": "study", "recorded_at": _now(), "value": json.dumps(dict(fact))})
        ]
        for context in contexts:
            rows += _context(context)
        self._write(rows)

    def add_preparation(self, context: int, preparation: Preparation | None, failure: str | None) -> None:
        """Keep what was found while a context was prepared, or why it cannot be."""
        row = {
            "context": context,
            "recorded_at": _now(),
            "status": "failed" if preparation is None else "ready",
            "found": None if preparation is None else PREPARATION.dump_json(preparation).decode(),
            "failed_words": failure,
        }
        self._write([("preparation", row)])

    def add_block(self, context: int, block: Block) -> None:
        """Keep a block with all its trials, in one transaction."""
        at = {"context": context, "block": block.number}
        positions = self._positions(block)
        rows: list[tuple[str, dict[str, Any]]] = [
            ("counter_name", {"position": position, "name": name})
            for name, position in positions.items()
            if name not in self._known
        ]
        rows.append(("block", {**at, "finished_at": _now(), "wall_s": block.wall_s}))
        for trial in block.trials.values():
            rows.append(("trial", {**at, **_finished(trial), "counters": counters_text(trial.counters, positions)}))
            rows += [("window", {**at, **row}) for row in _windows(trial)]
        rows += [("trial", {**at, **_failed(failure)}) for failure in block.failures]
        self._write(rows)
        self._known = positions

    def _positions(self, block: Block) -> dict[str, int]:
        """Where each counter stands in a trial's array: the known ones as ever, new ones at the end."""
        names = dict.fromkeys(name for trial in block.trials.values() for name in trial.counters)
        new = [name for name in names if name not in self._known]
        return self._known | {name: len(self._known) + number for number, name in enumerate(new)}

    def _make_tables(self) -> None:
        script = resources.files(__package__).joinpath("schema.sql").read_text()
        program = f"pgversus {metadata.version('pgversus')}"
        self._database.executescript(f"BEGIN; {script}")
        self._insert("schema", version=SCHEMA_VERSION, program=program)
        self._database.execute("COMMIT")

    def _write(self, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        try:
            self._database.execute("BEGIN")
            for table, row in rows:
                self._insert(table, **row)
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            raise unwritable(self.folder, error) from error
        finally:
            # A full disk or Ctrl-C in the middle: nothing half-written, and the next row can be added.
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")

    def _insert(self, table: str, **row: Any) -> None:
        # Table and column names are our own words; values are bound.
        names = ", ".join(f'"{name}"' for name in row)
        marks = ", ".join("?" for _ in row)
        self._database.execute(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', tuple(row.values()))  # noqa: S608


def _context(context: Context) -> list[tuple[str, dict[str, Any]]]:
    fact = ContextFact(levels=context.levels, comparison=context.comparison)
    rows: list[tuple[str, dict[str, Any]]] = [
        (
            "context",
            {"context": context.number, "label": context.label, "comparison": CONTEXT.dump_json(fact).decode()},
        )
    ]
    for arm in context.comparison.arms:
        settings = json.dumps({setting.name: setting.value for setting in arm.settings})
        row = {"context": context.number, "arm": arm.index, "label": arm.label, "settings": settings}
        rows.append(("arm", row))
    return rows


def _finished(trial: Trial) -> dict[str, Any]:
    histogram = trial.histogram
    return {
        "arm": trial.arm,
        "status": "finished",
        "transactions": trial.transactions,
        "seconds": trial.seconds,
        "failed": trial.failed,
        "unclocked": trial.unclocked,
        "latency_sum_s": trial.latency_sum_s,
        "latency_min_s": trial.latency_min_s,
        "latency_max_s": trial.latency_max_s,
        **{column: trial.quantiles.get(q) for q, column in _QUANTILE_COLUMNS.items()},
        "trend": trial.trend,
        "histogram_first_bin": histogram.first_bin,
        "histogram_counts": json.dumps(histogram.counts.tolist()),
    }


def _failed(failure: FailedTrial) -> dict[str, Any]:
    return {
        "arm": failure.arm,
        "status": "failed",
        "failed_phase": failure.phase.value,
        "failed_words": failure.words,
    }


def _windows(trial: Trial) -> list[dict[str, Any]]:
    return [
        {
            "arm": trial.arm,
            "round": number,
            "transactions": window.transactions,
            "seconds": window.seconds,
            "raw_output": window.output,
        }
        for number, window in enumerate(trial.windows, 1)
    ]


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _in_use(folder: Path) -> StoreError:
    return StoreError(
        "another run of pgversus is writing to this folder",
        slug="store-in-use",
        where=str(folder),
        found="its lock is held",
        expected="one run at a time",
        to_do="wait for it, or name another folder with --results",
    )
