"""Texts of users: SQL, commands, connections, names and quantities, parsed and with secrets removed."""

import json
import shlex
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from psycopg import conninfo

from pgversus.cli.command import command_typed
from pgversus.cli.question import parse_variable
from pgversus.errors import StudyError
from pgversus.postgres.labels import labelled_server
from pgversus.postgres.session import uri_target
from pgversus.study.host_access import host_access_of
from pgversus.study.servers import RunningServer, parse_to_build
from pgversus.study.settings import parse_setting
from pgversus.study.study import Study
from pgversus.study.workload import split_weight
from pgversus.text.documents import document_without_secrets
from pgversus.text.redaction import (
    code_without_secrets,
    command_without_secrets,
    message_without_secrets,
    value_without_secrets,
    without_secrets,
    word_without_secrets,
)
from pgversus.text.sql import without_comments
from pgversus.text.units import parse_duration, parse_pin, parse_share, parse_size, parse_whole_seconds, parse_window
from tests.fuzz.mutations import changed_numbers, changed_text, one_of
from tests.fuzz.target import Target
from tests.unit.study.file.reading import SHORT, study

_CODE = [
    "CREATE USER MAPPING FOR me SERVER s OPTIONS (user 'me', password 'Geheim99');",
    "ALTER ROLE a PASSWORD E'a\\'b' /* x */; -- password=1\nSELECT $q$password 'x'$q$, set_config('password', 'y');",
    "COPY t FROM PROGRAM 'curl -u me:pw http://h';\n\\! id\n\\copy t from stdin\n\\i ../x.sql\n\\g | sh\n\\o /tmp/f\n",
    "CREATE FUNCTION f() RETURNS int LANGUAGE c AS '/lib/x', 'f';\nLOAD 'x'; SELECT pg_read_file('/etc/passwd');",
    "psql 'host=h user=u password=p dbname=d' -c \"SELECT 1\" --password x",
    "PGPASSWORD=x sh -c 'pg_dump postgresql://me:pw@h:5432/d?sslpassword=y'",
    "localhost:5432:*:me:Geheim99\n",
    '{"password": "x", "inner": [{"name": "api_key", "value": "y"}], "text": "postgresql://u:p@h"}',
    "\\set password x\nSELECT * FROM dblink('password=:password', 'x');\n\\setshell a cat /etc/passwd\n",
]
_SERVERS = [
    *("postgresql://u:p@h:5432/d?sslmode=require&options=-c%20a%3Db", "postgres:///d?host=/tmp&port=1", "17+cc=clang"),
    *("https://h/p.tar.bz2#sha256=" + "0" * 64, "./tree@main+cflags=-O3 -g+with-x=y", "source:17.8", "wheel:18"),
    *(
        "17.8",
        "18beta1",
        "git@h:x",
        "file:///p.tar.gz",
        "/usr/lib/postgresql/17/bin",
        "17+blocksize=16+wal-blocksize=64",
    ),
]
_QUANTITIES = [
    "90s",
    "2h",
    "15m",
    "2%",
    "0.5 %",
    "50ms",
    "20tx",
    "2",
    "auto",
    "off",
    "0-3,5",
    "5GB",
    "1e3",
    "a=b",
    "q@2",
]
_HIDERS = (without_secrets, message_without_secrets, word_without_secrets, code_without_secrets)
_PARSERS: tuple[Callable[[str], Any], ...] = (
    *(
        lambda text, parse=parse: parse(text, "--flag")
        for parse in (
            parse_duration,
            parse_pin,
            parse_share,
            parse_size,
            parse_whole_seconds,
            parse_window,
            split_weight,
        )
    ),
    parse_setting,
    parse_variable,
    parse_to_build,
)


def _change(text: str, other: str, rng: Random) -> str:
    return changed_numbers(text, rng) if rng.random() < 0.2 else changed_text(text, other, rng)


def _hide(text: str, _folder: Path) -> bool:
    hidden = [hide(text) for hide in _HIDERS]
    value_without_secrets(text[:20], text)
    # Documents are parsed before their secrets are removed.
    with suppress(ValueError, RecursionError):
        json.loads(text)
        document_without_secrets(text)
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split(" ")
    command_without_secrets(words)
    command_typed(words)
    without_comments(text)
    return hidden != [text] * len(hidden)


@cache
def _study() -> Study:
    return study(f"{SHORT}[dataset]\nsetup = ['fill.sql']\n")


def _judge(sql: str, _folder: Path) -> bool:
    found = host_access_of(_study(), {"/studies/fill.sql": sql}, [sql[:50]])
    assert not any("\n" in line or "\r" in line for line in found.lines)
    return len(found.lines) > 1


def _name(text: str, _folder: Path) -> bool:
    try:
        label, server = labelled_server(text)
    except StudyError:
        return False
    assert label.encode()
    if isinstance(server, RunningServer):
        target = uri_target(server.uri, [], uses_environment=False)
        # This conninfo is on the command line of pgbench.
        assert "password" not in conninfo.conninfo_to_dict(target.conninfo)
    return True


def _parse(text: str, _folder: Path) -> bool:
    accepted = False
    for parse in _PARSERS:
        try:
            parse(text)
        except StudyError:
            continue
        accepted = True
    return accepted


HIDDEN = Target(name="secrets", share=10, make=lambda rng: one_of(rng, _CODE, _change), read=_hide)
ACCESS = Target(name="host access", share=10, make=lambda rng: one_of(rng, _CODE, _change), read=_judge)
SERVERS = Target(name="server names", share=15, make=lambda rng: one_of(rng, _SERVERS, _change), read=_name)
QUANTITIES = Target(
    name="quantities", share=15, make=lambda rng: one_of(rng, _QUANTITIES + _SERVERS, _change), read=_parse
)
