"""Command lines with arbitrary commands, options and values, run up to the point where they would start something."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import click

from pgversus.cli.main import pgversus
from pgversus.store.folder import FILE_NAME
from tests.fuzz.mutations import CONTROLS, NUMBERS, TOKENS, changed_text
from tests.fuzz.plans import REAL
from tests.fuzz.program import exit_code_of
from tests.fuzz.results import whole_file
from tests.fuzz.target import Target
from tests.fuzz.watching import Effects
from tests.unit.study.file.reading import SHORT

_VALUES = (
    *("16", "17.8", "17", "17+blocksize=16", "17+cflags=-O3", "source:17", "zonky:16", "./tree@main", "p.tar.gz"),
    *(
        "postgresql://u:p@h:5432/d",
        "postgresql://",
        "https://h/p.tar.bz2#sha256=0",
        "/usr/bin",
        "postgresql:///?host=x",
    ),
    *("work_mem=4MB,64MB", "jit=on", "a.b='x,y',z", "=", "q.sql", "q.sql@3", "q.sql@-1", "missing.sql", "latin.sql"),
    *("tpcb-like", "select-only@2", "se", "rows=10", "password=x", "VACUUM t", "SELECT true", "sh -c 'echo'", "''"),
    *("5e-324", "9" * 400, "https://[bad/p.tar.gz"),
    *("2%", "0", "-5", "90s", "2h", "20tx", "50ms", "auto", "off", "0-1", "1-0", "nobody", "root", "nobodyelse"),
    *("study.toml", "study", "results", "plan.json", "pipe", "-", "--", ".", "..", "/", "/dev/null", "/dev/zero", "~"),
    *("planner-16-vs-17", "quick", "en", "ja", "json", "markdown", "html", "article", "tables", "simple", "tps", ""),
)
_PLAN = json.dumps(REAL[0]["17"])


def _commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from _commands(command, (*path, name))


_COMMANDS = list(_commands(pgversus))
_OPTIONS = {
    path: [option for option in command.params if isinstance(option, click.Option)] for path, command in _COMMANDS
}


def _value(rng: Random) -> str:
    text = rng.choice(_VALUES) if rng.random() < 0.8 else rng.choice([*CONTROLS, *NUMBERS, *TOKENS])
    # An argument of a process contains no null bytes, and surrogates in place of bytes that are not UTF-8.
    text = changed_text(text, rng.choice(_VALUES), rng) if rng.random() < 0.15 else text
    text = text.replace("\0", "\udc80") if rng.random() < 0.5 else text.replace("\0", "")
    return "".join(c if not "\ud800" <= c <= "\udfff" or "\udc80" <= c <= "\udcff" else "\udcff" for c in text)


def _make(rng: Random) -> tuple[list[str], bytes]:
    path, _ = rng.choice(_COMMANDS)
    options = _OPTIONS[path]
    arguments = [*path, *(_value(rng) for _ in range(rng.choice([0, 1, 1, 2, 2, 3])))]
    for option in rng.sample(options, min(len(options), rng.choice([0, 1, 2, 3, 6]))):
        arguments.append(rng.choice(option.opts))
        if not option.is_flag:
            choices = list(option.type.choices) if isinstance(option.type, click.Choice) else []
            arguments.append(rng.choice(choices) if choices and rng.random() < 0.7 else _value(rng))
    match rng.randrange(12):
        case 0:
            arguments.insert(rng.randrange(len(arguments) + 1), _value(rng))
        case 1:
            del arguments[rng.randrange(len(arguments))]
        case 2:
            rng.shuffle(arguments)
        case 3:
            arguments.append(rng.choice(["-h", "--help", "-V", "--version", "--nonsense", "-Zx"]))
        case _:
            pass
    return arguments, rng.choice([b"", b"[]", b"\xff\xfe", b"y\n"])


def _start(subject: tuple[list[str], bytes], folder: Path) -> bool:
    arguments, stdin = subject
    (folder / "study.toml").write_text(SHORT)
    (folder / "query.sql").write_text("SELECT 1;\n")
    (folder / "q.sql").write_text("SELECT 1;\n")
    (folder / "latin.sql").write_bytes(b"SELECT '\xe9';")
    (folder / "plan.json").write_text(_PLAN)
    (folder / "results").mkdir()
    (folder / "results" / FILE_NAME).write_bytes(whole_file())
    return exit_code_of(arguments, folder, stdin=stdin) == 0


COMMAND_LINES = Target(
    name="command line", share=3, make=_make, read=_start, effects=Effects.STOPPED, most_seconds=10.0
)
