"""Results truncated at every byte: refused with a StoreError, or shown unchanged."""

import json
import os
from functools import partial
from pathlib import Path
from random import Random

from pgversus.errors import StoreError
from pgversus.report.json_document import study_document
from pgversus.store.folder import FILE_NAME
from tests.faults.fault import Fault, Outcome
from tests.faults.invariants import shown
from tests.faults.study import RUN, write_study
from tests.live.conftest import CommandLine


def _play(step: int, line: CommandLine, rng: Random) -> Outcome:
    """Truncate the results of a run to each length, the longest first; step: bytes between two lengths."""
    write_study(line, rng)
    ended = line.run(*RUN)
    assert ended.code == 0, ended.stderr
    folder = line.directory / "results"
    file = folder / FILE_NAME
    whole, size = _document(folder), file.stat().st_size
    lengths = range(size - 1 - rng.randrange(step), -1, -step)
    violations, complete = [], 0
    for length in lengths:
        os.truncate(file, length)
        try:
            found = _document(folder)
        except StoreError:
            continue
        except Exception as error:  # noqa: BLE001 - any of them would be exit 70
            violations.append(f"{length} of {size} bytes: {type(error).__name__}: {error}")
            continue
        complete += 1
        if found != whole:
            violations.append(f"{length} of {size} bytes: half an answer")
    end = f"{len(lengths)} lengths of {size} bytes: {len(lengths) - complete} refused, {complete} shown as they were"
    return Outcome(moment="every byte" if step == 1 else f"every {step}th byte", end=end, violations=tuple(violations))


def _document(folder: Path) -> str:
    """Return the answer as a document, after showing it as `pgversus report` does."""
    return json.dumps(study_document(shown(folder)), default=list)


TRUNCATIONS = (
    Fault(
        name="truncated-results",
        what="results cut off at every 97th byte",
        play=partial(_play, 97),
        tries=0,
    ),
    Fault(
        name="truncated-everywhere",
        what="results cut off at every byte",
        play=partial(_play, 1),
        tries=1,
        is_tested=False,
    ),
)
