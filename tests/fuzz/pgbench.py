"""Output of pgbench and servers: summaries, transaction logs, statements, notices of VACUUM."""

import math
from pathlib import Path
from random import Random

from pgversus.postgres.operation_reports import vacuum_counters
from pgversus.study.counters import REPORTED_BY_VACUUM
from pgversus.workload.pgbench import UnreadableOutputError, has_begun_nothing, parse_summary, stderr_text
from pgversus.workload.pgbench_log import (
    SliceEnd,
    TransactionEnds,
    UnreadableLogError,
    read_ends,
    read_latencies,
    slices,
)
from pgversus.workload.sent_statements import in_one_transaction, parameters_of, sent_statements
from tests.builders import DATA
from tests.fuzz.mutations import changed_bytes, changed_numbers, changed_text, one_of
from tests.fuzz.target import Target

_CAPTURED = DATA / "pgbench"
SUMMARIES = [file.read_text() for file in sorted(_CAPTURED.glob("*.stdout"))]
_WORDS = [file.read_text() for file in sorted(_CAPTURED.glob("*.stderr"))]
_MOST_LOG_BYTES = 20_000
LOGS = [file.read_bytes()[:_MOST_LOG_BYTES].rpartition(b"\n")[0] + b"\n" for file in sorted(_CAPTURED.glob("*.log*"))]
_VACUUM = [file.read_text() for file in sorted((DATA / "vacuum").glob("*/*.txt"))]
_SCRIPTS = [
    "\\set a random(1, 10)\nBEGIN;\nSELECT $1, :a; -- x\nCOMMIT;\n",
    "\\if :a > 1\nSELECT 'a;b' AS x \\gset p_\n\\else\n/* ; */ SELECT $$;$$;\n\\endif\n\\sleep 1 ms\n",
    "\\startpipeline\nSELECT 1;\n\\endpipeline\nINSERT INTO t VALUES (:a, E'\\'')\n",
]
_TOLD = [
    "pgbench: client 0 sending SELECT 1, 5;\npgbench: client 0 receiving\npgbench: client 0 executing \\set a\n",
    "pgbench: debug: client 0 sending INSERT INTO t VALUES ($1, $2)\npgbench: debug: client 0 receiving\n",
]


def _other(text: str, other: str, rng: Random) -> str:
    return changed_numbers(text, rng) if rng.random() < 0.5 else changed_text(text, other, rng)


def _read_summary(subject: tuple[str, str], _folder: Path) -> bool:
    text, words = subject
    has_begun_nothing(text)
    assert len(stderr_text(words).splitlines()) <= len(words.splitlines())
    try:
        found = parse_summary(text)
    except UnreadableOutputError:
        return False
    assert found.transactions > 0
    assert found.failed >= 0
    assert found.seconds > 0
    assert math.isfinite(found.seconds)
    assert 0 <= found.connect_s < math.inf
    return True


def _make_log(rng: Random) -> tuple[list[bytes], list[int]]:
    files = []
    for _ in range(rng.choice([1, 1, 2])):
        content, other = rng.choice(LOGS), rng.choice(LOGS)
        if rng.random() < 0.5:
            content = content[: rng.choice([200, 2000])].rpartition(b"\n")[0] + b"\n"
        match rng.randrange(4):
            case 0 | 1:
                content = changed_bytes(content, other, rng)
            case 2:
                content = changed_numbers(content.decode(), rng).encode()
            case _:
                content = changed_text(content.decode(), other.decode(), rng).encode(errors="surrogatepass")
        files.append(content)
    return files, sorted(rng.randrange(2 * 10**6) for _ in range(2 * rng.randint(1, 5)))


def _read_log(subject: tuple[list[bytes], list[int]], folder: Path) -> bool:
    contents, moments = subject
    files = [folder / f"log.{number}" for number in range(len(contents))]
    for file, content in zip(files, contents, strict=True):
        file.write_bytes(content)
    accepted = False
    for is_open_loop in (False, True):
        try:
            found = read_latencies(files, is_open_loop=is_open_loop)
        except UnreadableLogError:
            continue
        accepted = True
        assert found.histogram.total >= 0
        assert 0 <= found.max_s <= found.sum_s * 1.001
        assert math.isfinite(found.sum_s)
        assert found.unclocked >= 0
    try:
        ends = read_ends(files)
    except UnreadableLogError:
        return accepted
    _cut(ends, moments)
    return True


def _cut(ends: TransactionEnds, moments: list[int]) -> None:
    """Cut the run at these offsets from its first time stamp."""
    first = int(ends.microseconds.min(initial=2**60)) if len(ends.microseconds) else 0
    at = [first + moment for moment in moments]
    stops = [
        SliceEnd(stopped=first - 1, sessions=()),
        *(SliceEnd(stopped=end, sessions=((end - 1, end),)) for end in at[1::2]),
    ]
    found = slices(ends, at[::2], stops)
    assert sum(one.transactions for one in found) <= len(ends.microseconds)
    assert all(math.isfinite(one.latency_sum_s) and math.isfinite(one.latency_max_s) for one in found)


def _make_statements(rng: Random) -> tuple[str, str, str, str]:
    reported = one_of(rng, _TOLD, _other)
    return one_of(rng, _SCRIPTS, _other), reported, rng.choice(_TOLD), reported


def _read_statements(subject: tuple[str, str, str, str], _folder: Path) -> bool:
    script, reported, template, text = subject
    whole = in_one_transaction(script)
    assert whole.startswith("BEGIN;")
    sent = sent_statements(reported)
    parameters_of(template, text)
    return bool(sent)


def _read_notices(subject: str, _folder: Path) -> bool:
    found = vacuum_counters(subject.split("\n\n"))
    assert set(found) <= set(REPORTED_BY_VACUUM)
    assert all(math.isfinite(value) for value in found.values()), found
    return bool(found)


SUMMARY = Target(
    name="pgbench summary",
    share=20,
    make=lambda rng: (one_of(rng, SUMMARIES, _other), one_of(rng, _WORDS, _other)),
    read=_read_summary,
)
LOG = Target(name="pgbench log", share=30, make=_make_log, read=_read_log)
STATEMENTS = Target(name="statements", share=20, make=_make_statements, read=_read_statements)
NOTICES = Target(name="VACUUM notices", share=15, make=lambda rng: one_of(rng, _VACUUM, _other), read=_read_notices)
