"""Results files with any byte, column or document value changed, shown in every format."""

import re
import sqlite3
import tempfile
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from random import Random

from pgversus.store import reading
from pgversus.store.folder import FILE_NAME
from tests.fuzz.mutations import CONTROLS, OTHERS, changed_bytes, changed_json
from tests.fuzz.program import exit_code_of
from tests.fuzz.target import Target
from tests.unit.store.whole import changed, write_whole

VALUES = (
    "NULL",
    "'x'",
    "''",
    "x'00ff'",
    "zeroblob(2000000)",
    "-1",
    "0",
    "1",
    "9223372036854775807",
    "1.5",
    "9e999",
    "-9e999",
    "5e-324",
    "1e300",
    "CAST(x'ff' AS TEXT)",
    "'" + "[" * 5000 + "'",
    "'[]'",
    "'{}'",
    "'null'",
    "'\"\\ud800\"'",
    "'[NaN, 1e999]'",
    # Text may end at a null character.
    f"CAST(x'{''.join(sorted(CONTROLS, reverse=True)).encode().hex()}' AS TEXT)",
)
"""Values of SQL that some column does not expect."""
_SCHEMA = "\n".join((Path(reading.__file__).parent / name).read_text() for name in ("schema.sql", "later.sql"))


def columns_of(table: str) -> list[str]:
    """Return the columns of a table of results."""
    body = re.split(rf"CREATE TABLE (?:IF NOT EXISTS )?{table} \(", _SCHEMA)[1].partition("\n);")[0]
    return re.findall(r"^    ([a-z]\w+) (?:TEXT|INTEGER|REAL|BLOB)", body, re.MULTILINE)


READ = ("schema", "fact", "context", "preparation", "block", "trial", "latency_histogram", "counter_name")
PLACES = [(table, column) for table in (*READ, "plan", "explained_arm") for column in columns_of(table)]

# A file from someone else may violate its constraints.
WITHOUT_RULES = (
    "PRAGMA foreign_keys = OFF",
    "PRAGMA ignore_check_constraints = ON",
    "PRAGMA writable_schema = ON",
    *(
        f"UPDATE sqlite_master SET sql = replace(sql, '{kind} NOT NULL', '{kind}') WHERE type = 'table'"  # noqa: S608 - its own file
        for kind in ("TEXT", "INTEGER", "REAL")
    ),
    "PRAGMA writable_schema = RESET",
)
DOCUMENTS = [
    *(("fact", "value", number) for number in range(1, 11)),
    *(("context", "comparison", number) for number in (1, 2, 3)),
    *(("preparation", "found", number) for number in (1, 2)),
    *(("explained_arm", name, number) for name in ("settings", "statistics", "sampled") for number in (1, 2)),
    *(("plan", name, number) for name in ("planned", "run", "undone_by") for number in (1, 3)),
]
_CROWDED = 0.02
# Share of documents in which a list gets very many invalid items.
_FORMS = (
    ["--published"],
    ["--format", "markdown", "--published"],
    ["--format", "markdown", "--style", "article"],
    ["--json"],
    ["--format", "csv"],
    ["--format", "trials-csv"],
    ["--format", "html"],
)


def put(folder: Path, table: str, column: str, value: str) -> None:
    """Set a column in the last row of a table to an SQL value, regardless of constraints."""
    last = f"rowid = (SELECT max(rowid) FROM {table})"  # noqa: S608 - its own file
    # A column that is an alias of the rowid accepts only integers.
    with suppress(sqlite3.IntegrityError):
        changed(folder, *WITHOUT_RULES, f"UPDATE OR REPLACE {table} SET {column} = {value} WHERE {last}")  # noqa: S608 - its own file


def put_into_document(folder: Path, rng: Random) -> None:
    """Change values in one of the documents."""
    table, column, row = rng.choice(DOCUMENTS)
    with closing(sqlite3.connect(folder / FILE_NAME, isolation_level=None)) as database:
        ((text,),) = database.execute(f"SELECT {column} FROM {table} WHERE rowid = {row}")  # noqa: S608 - its own file
        other = rng.choice(OTHERS) if text is None else changed_json(text, rng)
        if rng.random() < _CROWDED:
            other = other.replace("[", "[" + "{}," * rng.randint(1000, 300_000), 1)
        database.execute("PRAGMA synchronous = off")
        database.execute("PRAGMA journal_mode = memory")
        database.execute("PRAGMA ignore_check_constraints = ON")
        other = other.encode(errors="surrogatepass").decode(errors="replace")
        database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (other, row))  # noqa: S608 - its own file


@cache
def whole_file() -> bytes:
    """Return a results file with rows in every table."""
    with tempfile.TemporaryDirectory(prefix="pgversus-fuzz-") as name:
        write_whole(Path(name))
        return (Path(name) / FILE_NAME).read_bytes()


def _make(rng: Random) -> tuple[str, int, list[str]]:
    """Return the kind of change, its seed, and the format in which to show the results."""
    kind = rng.choice(["bytes", "column", "document", "document", "columns"])
    form = rng.choice(_FORMS)
    language = [] if {"csv", "trials-csv", "--json"} & {*form} else ["--lang", rng.choice(["en", "ja"])]
    is_pair = "--published" not in form and "--style" not in form and "trials-csv" not in form and rng.random() < 0.2
    return kind, rng.getrandbits(64), ["results", *(["other"] if is_pair else []), *form, *language]


def _write(kind: str, seed: int, folder: Path) -> None:
    rng = Random(seed)  # noqa: S311 - not for cryptography
    content = whole_file()
    if kind == "bytes":
        content = changed_bytes(content, content, rng)
    (folder / FILE_NAME).write_bytes(content)
    for _ in range({"bytes": 0, "columns": rng.randint(2, 4)}.get(kind, 1)):
        if kind == "document":
            put_into_document(folder, rng)
        else:
            put(folder, *rng.choice(PLACES), rng.choice(VALUES))


def _report(subject: tuple[str, int, list[str]], folder: Path) -> bool:
    kind, seed, arguments = subject
    for name in ("results", "other"):
        (folder / name).mkdir()
    _write(kind, seed, folder / "results")
    if "other" in arguments:
        (folder / "other" / FILE_NAME).write_bytes(whole_file())
    return exit_code_of(["report", *arguments], folder) == 0


RESULTS = Target(name="results", share=1, make=_make, read=_report, most_seconds=10.0)
