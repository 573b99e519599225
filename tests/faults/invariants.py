"""Invariants after a fault: no finished block is lost, nothing is left behind, no premature verdict, no bug."""

import io
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psutil

from pgversus.answers.answer import StudyAnswer
from pgversus.answers.read import read_answer
from pgversus.data.snapshot_cache import cached_snapshots
from pgversus.errors import StoreError
from pgversus.host.directories import Cache
from pgversus.host.files import manifest
from pgversus.report.console import SafeConsole
from pgversus.report.json_document import study_document
from pgversus.report.terminal import print_study_answer
from pgversus.stats.confidence import Verdict
from pgversus.store.folder import holds_results
from pgversus.store.results_file import read_only_uri
from pgversus.study.design import StopReason
from tests.faults.study import BLOCKS, WINDOWS
from tests.live.conftest import CommandLine, Ended

StoredBlocks = Mapping[tuple[str, int, int], tuple[tuple[Any, ...], ...]]
"""Rows by table, context and block."""
_TABLES = ("block", "trial", "window", "latency_histogram")
_CLEANED_S = 30.0
"""Time for a guard to clean up, including its wait for the servers."""
_NO_CLAIM = {Verdict.UNDECIDED, Verdict.INVALID}
_ENDS = {0, 2, 3, 4, 5, 130}


def opened(folder: Path) -> closing[sqlite3.Connection]:
    """Open results for reading, which needs no space on a full disk."""
    return closing(sqlite3.connect(read_only_uri(folder), uri=True))


def stored_blocks(folder: Path) -> StoredBlocks:
    """Return every row of every block in a results folder; empty without results."""
    if not holds_results(folder):
        return {}
    with opened(folder) as database:
        database.execute("BEGIN")
        blocks = database.execute("SELECT context, block FROM block").fetchall()
        return {
            (table, context, block): tuple(
                # Table names are constants.
                database.execute(f'SELECT * FROM "{table}" WHERE (context, block) = (?, ?)', (context, block))  # noqa: S608
            )
            for context, block in blocks
            for table in _TABLES
        }


def lost(before: StoredBlocks, after: StoredBlocks) -> Iterator[str]:
    """Yield rows of earlier results that are missing or changed."""
    for key, rows in before.items():
        if after.get(key) != rows:
            yield f"lost or changed: {key[0]} of block {key[2]} of context {key[1]}"


def half_measured(folder: Path) -> Iterator[str]:
    """Yield blocks that lack a trial, finished trials that lack a window, failed trials with a number."""
    if not holds_results(folder):
        return
    with opened(folder) as database:
        for context, block, trials in database.execute(
            "SELECT b.context, b.block, count(t.arm) FROM block b"
            " LEFT JOIN trial t ON (t.context, t.block) = (b.context, b.block)"
            " GROUP BY 1, 2 HAVING count(t.arm) <> 2 AND coalesce(sum(t.status = 'failed'), 0) = 0"
        ):
            yield f"block {block} of context {context} has {trials} trials and no failure"
        for block, arm, windows in database.execute(
            "SELECT t.block, t.arm, count(w.round) FROM trial t"
            " LEFT JOIN window w USING (context, block, arm) WHERE t.status = 'finished'"
            " GROUP BY t.context, t.block, t.arm HAVING count(w.round) <> ?",
            (WINDOWS,),
        ):
            yield f"a finished trial, block {block} arm {arm}, has {windows} windows of {WINDOWS}"
        for block, arm in database.execute(
            "SELECT block, arm FROM trial WHERE status = 'failed' AND (coalesce(failed_words, '') = ''"
            " OR coalesce(transactions, seconds, latency_sum_s, trend, ratio_error, counters) IS NOT NULL"
            " OR EXISTS (SELECT 1 FROM window w WHERE (w.context, w.block, w.arm) ="
            " (trial.context, trial.block, trial.arm)))"
        ):
            yield f"a failed trial, block {block} arm {arm}, has a number or no words"


def failed_trials(folder: Path) -> list[str]:
    """Return the message of every failed trial in these results."""
    if not holds_results(folder):
        return []
    with opened(folder) as database:
        return [words for (words,) in database.execute("SELECT failed_words FROM trial WHERE status = 'failed'")]


def missing_blocks(folder: Path) -> int:
    """Return the number of blocks with both arms that the study's contexts lack; all of them without results."""
    if not holds_results(folder):
        return BLOCKS
    with opened(folder) as database:
        whole = database.execute(
            "SELECT context, (SELECT count(*) FROM (SELECT block FROM trial t WHERE t.context = c.context"
            " AND t.status = 'finished' GROUP BY block HAVING count(*) = 2)) FROM context c"
        )
        return sum(max(0, BLOCKS - blocks) for _, blocks in whole)


def shown(folder: Path) -> StudyAnswer:
    """Return the answer in a results folder, shown as by `pgversus report`; raise StoreError if it is refused."""
    answer = read_answer(folder)
    print_study_answer(answer, SafeConsole(file=io.StringIO(), width=100), with_published=False)
    json.dumps(study_document(answer), default=list, allow_nan=False)
    return answer


def dishonest(folder: Path) -> Iterator[str]:
    """Yield claims of results that do not follow from their blocks, as shown by `pgversus report`."""
    if not holds_results(folder):
        return
    try:
        answer = shown(folder)
    except StoreError as error:
        yield f"the report is refused: {error}"
        return
    except Exception as error:  # noqa: BLE001 - any of them would be exit 70
        yield f"the report fails: {type(error).__name__}: {error}"
        return
    for one in answer.answers:
        for result in one.analysis.results:
            if result.blocks < BLOCKS and result.verdict not in _NO_CLAIM:
                yield f"{result.verdict} after {result.blocks} of {BLOCKS} blocks"
    blocks = [one.analysis.results[0].blocks for one in answer.answers]
    if answer.stopped in {StopReason.BLOCKS, StopReason.DECIDED} and not any(found >= BLOCKS for found in blocks):
        yield f"reported as ended by {answer.stopped} after {blocks} of {BLOCKS} blocks"


def not_ours(ended: Ended) -> Iterator[str]:
    """Yield ends that no user should see: a traceback, a bug, an undocumented exit code, an error without a slug."""
    text = ended.stdout + ended.stderr
    if "Traceback (most recent call last)" in text or "error[bug]" in text:
        yield f"a bug: {text[-600:]}"
    elif ended.code not in _ENDS:
        yield f"exit code {ended.code}: {ended.stderr[-300:]}"
    elif ended.code in {2, 3, 5} and "error[" not in ended.stderr:
        yield f"exit code {ended.code} without an error: {ended.stderr[-300:]}"


def left_behind(line: CommandLine, processes: Iterable[psutil.Process], sockets: Iterable[Path]) -> list[str]:
    """Return what remains of a run some time after its end: processes, files, sockets."""
    deadline = time.monotonic() + _CLEANED_S
    found = _left(line, processes, sockets)
    while found and time.monotonic() < deadline:
        time.sleep(0.1)
        found = _left(line, processes, sockets)
    return found


def _left(line: CommandLine, processes: Iterable[psutil.Process], sockets: Iterable[Path]) -> list[str]:
    running = [str(process) for process in processes if _runs(process)]
    temporary = [str(path) for path in Path(line.environment["TMPDIR"]).iterdir()]
    half = [str(path) for path in (line.directory / "results").glob("*.part")]
    return [*line.leftovers(), *running, *temporary, *half, *(str(path) for path in sockets if path.exists())]


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def half_kept(line: CommandLine) -> Iterator[str]:
    """Yield cached data that do not match their record."""
    for kept in cached_snapshots(Cache(root=line.cache)):
        record = kept.record()
        if record is None:
            yield f"a cached snapshot without a record: {kept.key}"
        elif manifest(kept.directory / "data") != record.files:
            yield f"a cached snapshot has changed: {kept.key}"
