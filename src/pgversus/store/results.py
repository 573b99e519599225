"""Writing results: a block is on disk, whole, before the next one begins."""

import json
import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from pgversus.errors import StoreError
from pgversus.stats.trials import Block, FailedTrial, Trial

SCHEMA_VERSION = 1
FILE_NAME = "results.sqlite"


def check_folder(folder: Path) -> None:
    """StoreError when results could not be written to this folder, or when there are some already; makes nothing.

    Asked before anything is fetched or loaded, so that nothing is measured in vain.
    """
    try:
        is_taken = (folder / FILE_NAME).exists()
        nearest = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
        can_write = nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
    except OSError as error:
        raise _unwritable(folder, error.strerror or error) from error
    if is_taken:
        raise StoreError(
            "there are results in this folder already",
            slug="store-not-empty",
            where=str(folder),
            found=FILE_NAME,
            expected="a new folder",
            to_do="name another one with --results, or leave it out",
        )
    if not can_write:
        raise _unwritable(folder, f"{nearest} is no directory that this user may write to")


class Results:
    """The results folder of one comparison while it runs."""

    def __init__(self, folder: Path) -> None:
        """Make the folder and an empty file in it; StoreError when it cannot be, or when there is one already."""
        self.folder = folder
        check_folder(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(folder / FILE_NAME, isolation_level=None)
            self._database.execute("PRAGMA journal_mode = wal")
            self._database.execute("PRAGMA synchronous = full")
            self._database.execute("PRAGMA foreign_keys = on")
            script = resources.files(__package__).joinpath("schema.sql").read_text()
            self._database.executescript(f"BEGIN; {script} COMMIT;")
            self._insert("schema", version=SCHEMA_VERSION, program=f"pgversus {metadata.version('pgversus')}")
        except (OSError, sqlite3.Error) as error:
            raise _unwritable(folder, error) from error

    def close(self) -> None:
        """Close the file, so that it is one file again (no -wal beside it)."""
        self._database.close()

    def add_fact(self, name: str, value: Any) -> None:
        """Keep something that was asked, decided or found, as JSON."""
        self._write([("fact", {"name": name, "recorded_at": _now(), "value": json.dumps(value)})])

    def add_arm(self, arm: int, *, label: str, version: str, origin: str, settings: Mapping[str, str]) -> None:
        """Keep what an arm is."""
        row = {"arm": arm, "label": label, "version": version, "origin": origin, "settings": json.dumps(dict(settings))}
        self._write([("arm", row)])

    def add_block(self, block: Block) -> None:
        """Keep a block with all its trials, in one transaction."""
        rows: list[tuple[str, dict[str, Any]]] = [
            ("block", {"block": block.number, "finished_at": _now(), "wall_s": block.wall_s})
        ]
        for trial in block.trials.values():
            rows.append(("trial", _finished(block.number, trial)))
            rows += _windows(block.number, trial)
        rows += [("trial", _failed(block.number, failure)) for failure in block.failures]
        self._write(rows)

    def _write(self, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        try:
            self._database.execute("BEGIN")
            for table, row in rows:
                self._insert(table, **row)
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            raise _unwritable(self.folder, error) from error
        finally:
            # A full disk or Ctrl-C in the middle: nothing half-written, and the next row can be added.
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")

    def _insert(self, table: str, **row: Any) -> None:
        # Table and column names are our own words; values are bound.
        names = ", ".join(f'"{name}"' for name in row)
        marks = ", ".join("?" for _ in row)
        self._database.execute(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', tuple(row.values()))  # noqa: S608


def _finished(block: int, trial: Trial) -> dict[str, Any]:
    histogram = trial.histogram
    return {
        "block": block,
        "arm": trial.arm,
        "status": "finished",
        "transactions": trial.transactions,
        "seconds": trial.seconds,
        "failed": trial.failed,
        "latency_sum_s": sum(window.latency_sum_s for window in trial.windows),
        "latency_max_s": trial.latency_max_s,
        "histogram_first_bin": histogram.first_bin,
        "histogram_counts": json.dumps(histogram.counts.tolist()),
    }


def _failed(block: int, failure: FailedTrial) -> dict[str, Any]:
    return {
        "block": block,
        "arm": failure.arm,
        "status": "failed",
        "failed_phase": failure.phase.value,
        "failed_words": failure.words,
    }


def _windows(block: int, trial: Trial) -> list[tuple[str, dict[str, Any]]]:
    return [
        (
            "window",
            {
                "block": block,
                "arm": trial.arm,
                "round": number,
                "transactions": window.transactions,
                "seconds": window.seconds,
                "raw_output": window.output,
            },
        )
        for number, window in enumerate(trial.windows, 1)
    ]


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _unwritable(folder: Path, why: object) -> StoreError:
    return StoreError(
        "results cannot be written",
        slug="store-unwritable",
        where=str(folder),
        found=str(why),
        expected="a folder that can be written",
        to_do="make room there, or name another folder with --results; blocks that were finished are kept",
    )
