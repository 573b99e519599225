"""Study files: arbitrary documents with known keys, valid files with changes, and the same with --dry-run."""

import datetime as dt
import json
import math
import re
from pathlib import Path
from random import Random
from typing import Any

from pgversus.errors import StudyFileError
from pgversus.lab.studies import STUDY_FILE, bundled_names, library
from pgversus.study.file.description import schema_at, tables
from pgversus.study.file.document import as_key, as_toml
from pgversus.study.file.reference import LONG_EXAMPLE, OPERATION_EXAMPLE
from pgversus.study.host_access import host_access_of
from pgversus.study.servers import BuildFamily
from tests.fuzz.mutations import CONTROLS, changed_bytes, changed_numbers, changed_text
from tests.fuzz.program import exit_code_of
from tests.fuzz.target import Target
from tests.fuzz.watching import Effects
from tests.unit.study.file.reading import SHORT, study

_ASKING = """\
title = "Of more than its own"
[factors]
server = ["postgresql://u:p@db.example:5433/d?a=b", "./postgres@master+cflags=-O3", "17+cc=clang", "/usr/bin"]
[settings]
shared_preload_libraries = "auto_explain"
[dataset]
setup = ["../outside.sql", "setup.sql"]
[workload]
script = "query.sql"
"""
_FIGURES = re.compile(r"^published = .*\n", re.MULTILINE)
_BUNDLED = [
    # Every file contains its own name as a query, which is not valid as published figures.
    _FIGURES.sub("", (library() / name / STUDY_FILE).read_text(encoding="utf-8"))
    for name in bundled_names()
]
_FILES = {path.name for path in library().glob("*/*.sql")} | {"query.sql", "setup.sql", "q.sql"}
CORPUS = [SHORT, LONG_EXAMPLE, OPERATION_EXAMPLE, _ASKING, *_BUNDLED]
_VERSIONS = json.dumps(
    {"fetched_at": 4e9, "versions": [[major, minor] for major in range(12, 19) for minor in range(30)]}
)
"""A list as in the cache, fetched in the future, so that no registry is queried."""
PROFILES = (*[None] * 6, "quick", "published", "a")

TABLES = list(tables())
KEYS = sorted(
    {key for _, table in TABLES for key in table["properties"]} | {"weight", "name", "quick", "a", "b.c", "", "jit"}
)
SCALARS: list[Any] = [
    *(True, False, 0, 1, 4, -3, 2**31, 2**63, 10**40, 0.5, 1e300, -0.0, math.inf, math.nan),
    *("", "16", "17.8", "warm", "server", "tps", "2%", "5m", "a", "tpcb-like", "q.sql", "missing", "latin"),
    *("\xe9\u3042", "\0", "a b", "postgresql://u:p@h/d", dt.date(2024, 1, 1), dt.time(1, 2), *CONTROLS),
    *("17+blocksize=99999999999", "9" * 30, "x" * 300, "/", "..", "git://x", "https://h/p.tar.gz#sha256=0", "1e999"),
    *("100000000000h", "1e400%", "\\! id", "COPY t FROM PROGRAM 'id'", "0-99999999999"),
]


def any_value(rng: Random, depth: int = 3) -> Any:
    """Return an arbitrary TOML value."""
    kind = rng.randrange(6) if depth else 0
    if kind == 1:
        return [any_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind == 2:
        return {key: any_value(rng, depth - 1) for key in rng.sample(KEYS, rng.randrange(4))}
    return rng.choice(SCALARS)


def as_text(document: dict[str, Any]) -> str:
    """Return the document as TOML."""
    return "".join(f"{as_key(key)} = {as_toml(value)}\n" for key, value in document.items())


def of_real_keys(rng: Random) -> str:
    """Return a document with known keys in arbitrary places."""
    return as_text({key: any_value(rng) for key in rng.sample(KEYS, rng.randrange(7))})


def near_a_good_one(rng: Random) -> str:
    """Return a document whose tables have their own keys, with values that may be invalid."""
    document: dict[str, Any] = {"title": "t", "workload": {"sql": "1"}, "factors": {"server": ["16", "17"]}}
    for header, table in rng.sample(TABLES, rng.randrange(5)):
        name = header.strip("[]")
        target = document.setdefault(name, {}) if name else document
        for key in rng.sample(list(table["properties"]), rng.randrange(min(4, len(table["properties"]) + 1))):
            example = schema_at((name, key) if name else (key,))["examples"][0]
            if isinstance(target, dict):
                target[key] = example if rng.random() < 0.7 else any_value(rng)
    return as_text(document)


def changed_file(rng: Random) -> str:
    """Return a valid file with changes."""
    text = rng.choice(CORPUS)
    match rng.randrange(4):
        case 0:
            return changed_numbers(text, rng)
        case 1 | 2:
            return _with_another_value(text, rng)
        case _:
            return changed_text(text, rng.choice(CORPUS), rng)


def _with_another_value(text: str, rng: Random) -> str:
    """Return the file with the value of one key replaced by that of another key or by an arbitrary one."""
    lines = text.split("\n")
    places = [place for place, line in enumerate(lines) if " = " in line]
    place, other = rng.choice(places), rng.choice(places)
    key, value = lines[place].partition(" = ")[0], lines[other].partition(" = ")[2]
    lines[place] = f"{key} = {value if rng.random() < 0.5 else as_toml(any_value(rng))}"
    return "\n".join(lines)


def any_file(rng: Random) -> str:
    """Return a file of one of these kinds."""
    return rng.choice([of_real_keys, near_a_good_one, *[changed_file] * 4])(rng)


def is_study(text: str, profile: str | None = None) -> bool:
    """Return whether the file was accepted; AssertionError unless a rejection is a list of complete problems."""
    try:
        found = study(text, profile=profile)
    except StudyFileError as error:
        assert error.problems  # noqa: PT017 - acceptance and rejection are both correct
        for problem in error.problems:
            assert problem.what
            assert problem.where.startswith("planner.toml")
            assert problem.found
            assert problem.expected
            assert problem.to_do
            assert "\n" not in problem.what + problem.where
            assert problem.slug.startswith(("study-", "statements-"))
        return False
    assert found.contexts
    for line in host_access_of(found, {"/studies/setup.sql": text}, ["../outside.sql"]).lines:
        assert "\n" not in line
    return True


def _make_dry_run(rng: Random) -> tuple[bytes, bytes, list[str]]:
    text = any_file(rng).encode(errors="surrogatepass")
    if rng.random() < 0.1:
        text = changed_bytes(text, SHORT.encode(), rng)
    sql = changed_text("\\set a 1\nSELECT 1; -- a\nCOPY t FROM stdin;\n", "\\! id\n\\i /etc/passwd\n", rng)
    flags = ["--no-plans", "--new", "--lang=ja", "--trust", "--profile=quick", "--budget=1h", "--seed=1"]
    return text, sql.encode(errors="surrogatepass"), rng.sample(flags, rng.choice([0, 0, 1, 2]))


def _dry_run(subject: tuple[bytes, bytes, list[str]], folder: Path) -> bool:
    text, sql, flags = subject
    place = folder / "study"
    place.mkdir()
    (place / STUDY_FILE).write_bytes(text)
    for name in _FILES:
        (place / name).write_bytes(sql)
    index = folder / "cache" / "index"
    index.mkdir(parents=True)
    for family in BuildFamily:
        (index / f"{family}.json").write_text(_VERSIONS)
    return exit_code_of(["run", "study", "--dry-run", *flags], folder) == 0


STUDY_FILES = Target(
    name="study file",
    share=20,
    make=lambda rng: (any_file(rng), rng.choice(PROFILES)),
    read=lambda subject, _: is_study(*subject),
)
DRY_RUNS = Target(name="dry run", share=3, make=_make_dry_run, read=_dry_run, effects=Effects.DRY_RUN, most_seconds=5.0)
