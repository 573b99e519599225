"""Writing results: each block is completely on disk before the next one begins."""

import json
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from importlib import metadata, resources
from pathlib import Path
from typing import Any, Self

from pgversus.host.directories import make_directory
from pgversus.host.on_disk import sync_to_disk
from pgversus.host.permissions import PRIVATE_DIRECTORY, write_private
from pgversus.records.preparation import Preparation
from pgversus.records.trials import Block, FailedTrial, Trial
from pgversus.store.codec import CONTEXT, PREPARATION, STUDY, ContextFact, add_missing_columns, fact_without_secrets
from pgversus.store.counters import counter_names, counters_blob
from pgversus.store.folder import FILE_NAME, SCHEMA_VERSION, unwritable
from pgversus.store.latencies import QUANTILE_COLUMNS
from pgversus.store.leases import Lease, Outcome
from pgversus.store.plans import Row, plan_rows
from pgversus.store.results_file import check_schema, check_to_write
from pgversus.study.study import Context, StudyMetadata
from pgversus.text.documents import document_without_secrets
from pgversus.text.redaction import code_without_secrets, message_without_secrets


class Results:
    """The results folder of a running study; the writer must hold its lock (store/folder.py)."""

    def __init__(self, folder: Path) -> None:
        """Open the results in this folder; StoreError if they cannot be written."""
        self.folder = folder
        try:
            check_to_write(folder)
            with ExitStack() as stack:
                self._database = stack.enter_context(closing(sqlite3.connect(folder / FILE_NAME, isolation_level=None)))
                check_schema(self._database)
                _use_wal(self._database)
                self._database.execute("PRAGMA synchronous = full")
                self._database.execute("PRAGMA foreign_keys = on")
                self._database.executescript(_sql("later.sql"))
                add_missing_columns(self._database)
                self._known = {name: at for at, name in enumerate(counter_names(self._database))}
                stack.pop_all()
        except OSError as error:
            raise unwritable(folder, error.strerror or error) from error
        except (sqlite3.Error, ValueError) as error:
            raise unwritable(folder, error) from error

    @classmethod
    def begin(
        cls, folder: Path, study: StudyMetadata, contexts: Sequence[Context], facts: Mapping[str, Any] | None = None
    ) -> Self:
        """Create the folder and its file with the study, all contexts and the first facts.

        The file is renamed into place when it is complete, so that a kill never leaves one without its study.
        """
        part = folder / f"{FILE_NAME}.part"
        try:
            make_directory(folder, PRIVATE_DIRECTORY)
            part.unlink(missing_ok=True)
            # SQLite creates its other files with the mode of this file.
            write_private(part, "")
            _write_whole(part, study, contexts, facts or {})
            part.rename(folder / FILE_NAME)
            # Then the name of the file survives a power failure, as its content does.
            sync_to_disk(folder)
        except OSError as error:
            raise unwritable(folder, error.strerror or error) from error
        except sqlite3.Error as error:
            raise unwritable(folder, error) from error
        finally:
            part.unlink(missing_ok=True)
        return cls(folder)

    def close(self) -> None:
        """Close the file, which removes its -wal file."""
        self._database.close()

    def add_fact(self, name: str, value: Any) -> None:
        """Store a fact as JSON."""
        self._write([_fact(name, value)])

    def add_study(self, study: StudyMetadata) -> None:
        """Store the current metadata of the study."""
        self.add_fact("study", STUDY.dump_python(study, mode="json"))

    def add_preparation(self, context: int, preparation: Preparation | None, failure: str | None) -> None:
        """Store the preparation of a context with its plans, or the reason for its failure."""
        row = {
            "context": context,
            "recorded_at": _now(),
            "status": "failed" if preparation is None else "ready",
            "found": None if preparation is None else _found(preparation),
            "failed_words": None if failure is None else message_without_secrets(failure),
        }
        plans = None if preparation is None else preparation.plans
        self._write([("preparation", row), *(() if plans is None else plan_rows(context, plans))])

    def add_block(self, context: int, block: Block) -> None:
        """Store a block with all its trials in one transaction."""
        at = {"context": context, "block": block.number}
        positions = self._positions(block)
        rows: list[Row] = [
            ("counter_name", {"position": position, "name": name})
            for name, position in positions.items()
            if name not in self._known
        ]
        measured = {
            "finished_at": _now(),
            "wall_s": block.wall_s,
            "repeated_rounds": block.repeated_rounds,
            "host": block.host or None,
        }
        rows.append(("block", {**at, **measured}))
        for trial in block.trials.values():
            rows.append(("trial", {**at, **_finished(trial), "counters": counters_blob(trial.counters, positions)}))
            rows.append(("latency_histogram", {**at, **_histogram(trial)}))
            rows += [("window", {**at, **row}) for row in _windows(trial)]
        rows += [("trial", {**at, **_failed(failure)}) for failure in block.failures]
        rows += [("discarded_window", {**at, **window._asdict()}) for window in block.discarded]
        self._write(rows)
        self._known = positions

    def add_lease(self, lease: Lease, host: str) -> None:
        """Store that a host may measure a block."""
        self._write([("lease", {**asdict(lease), "host": host, "granted_at": _now()})])

    def end_lease(self, lease: Lease, outcome: Outcome) -> None:
        """Store how a lease ended."""
        self._write([("lease_end", {**asdict(lease), "ended_at": _now(), "outcome": outcome.value})])

    def add_unused(self, lease: Lease, block: Block) -> None:
        """Store the trials of a block that does not count."""
        self._write(
            [
                (
                    "unused_trial",
                    {**asdict(lease), "arm": arm, "transactions": one.transactions, "seconds": one.seconds},
                )
                for arm, one in block.trials.items()
            ]
        )

    def _positions(self, block: Block) -> dict[str, int]:
        """Return the index of each counter in a trial's array: known ones unchanged, new ones at the end."""
        names = dict.fromkeys(name for trial in block.trials.values() for name in trial.counters)
        new = [name for name in names if name not in self._known]
        return self._known | {name: len(self._known) + number for number, name in enumerate(new)}

    def _write(self, rows: Sequence[Row]) -> None:
        try:
            self._database.execute("BEGIN")
            _insert(self._database, rows)
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            raise unwritable(self.folder, error) from error
        finally:
            # After a full disk or Ctrl-C nothing is half-written, and the next row can be added.
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")


def _use_wal(database: sqlite3.Connection) -> None:
    """Raise ValueError if SQLite can only keep a rollback journal, as on some network file systems.

    After a kill, results with such a journal could be neither read nor resumed.
    """
    (mode,) = database.execute("PRAGMA journal_mode = wal").fetchone()
    if mode != "wal":
        raise ValueError("this file system does not support the write-ahead log of SQLite")


def _write_whole(file: Path, study: StudyMetadata, contexts: Sequence[Context], facts: Mapping[str, Any]) -> None:
    """Create a file with its tables and everything known before the first block, in one transaction."""
    schema, later = _sql("schema.sql"), _sql("later.sql")
    rows: list[Row] = [
        ("schema", {"version": SCHEMA_VERSION, "program": f"pgversus {metadata.version('pgversus')}"}),
        _fact("study", STUDY.dump_python(study, mode="json")),
        *(_fact(name, value) for name, value in facts.items()),
    ]
    for context in contexts:
        rows += _context(context)
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        # Needs no journal file: after a kill this file is never read.
        database.executescript(f"PRAGMA journal_mode = memory; BEGIN; {schema}{later}")
        _insert(database, rows)
        database.execute("COMMIT")


def _sql(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _insert(database: sqlite3.Connection, rows: Iterable[Row]) -> None:
    for table, row in rows:
        # Table and column names are constants of pgversus; values are bound.
        names = ", ".join(f'"{name}"' for name in row)
        marks = ", ".join("?" for _ in row)
        database.execute(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', tuple(row.values()))  # noqa: S608


def _fact(name: str, value: Any) -> Row:
    return "fact", {"name": name, "recorded_at": _now(), "value": fact_without_secrets(name, json.dumps(value))}


def _found(preparation: Preparation) -> str:
    return document_without_secrets(PREPARATION.dump_json(preparation, exclude={"plans"}).decode())


def _context(context: Context) -> list[Row]:
    fact = ContextFact(levels=context.levels, comparison=context.comparison)
    comparison = document_without_secrets(CONTEXT.dump_json(fact).decode())
    label = code_without_secrets(context.label)
    rows: list[Row] = [("context", {"context": context.number, "label": label, "comparison": comparison})]
    for arm in context.comparison.arms:
        settings = document_without_secrets(json.dumps({setting.name: setting.value for setting in arm.settings}))
        label = code_without_secrets(arm.label)
        row = {"context": context.number, "arm": arm.index, "label": label, "settings": settings}
        rows.append(("arm", row))
    return rows


def _finished(trial: Trial) -> dict[str, Any]:
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
        **{name: trial.quantiles.get(q) for name, q in QUANTILE_COLUMNS.items()},
        "trend": trial.trend,
        "ratio_error": trial.ratio_error,
        "windows": trial.window_count,
        "steps": json.dumps(trial.steps) if trial.steps else None,
    }


def _histogram(trial: Trial) -> dict[str, Any]:
    histogram = trial.histogram
    return {
        "arm": trial.arm,
        "first_bin": histogram.first_bin,
        "counts": json.dumps(histogram.counts.tolist()),
    }


def _failed(failure: FailedTrial) -> dict[str, Any]:
    return {
        "arm": failure.arm,
        "status": "failed",
        "failed_phase": failure.phase.value,
        "failed_words": message_without_secrets(failure.message),
    }


def _windows(trial: Trial) -> list[dict[str, Any]]:
    return [
        {
            "arm": trial.arm,
            "round": number,
            "transactions": window.transactions,
            "seconds": window.seconds,
            "raw_output": message_without_secrets(window.output),
        }
        for number, window in enumerate(trial.windows, 1)
    ]


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
