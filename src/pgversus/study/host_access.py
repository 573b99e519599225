"""A study's use of the host beyond its own servers and data: programs, connections, builds, files. Pure.

Only what is explicit in the study and its files is recognized. SQL that is assembled at run time, and functions and
extensions that reach outside, look like any other SQL.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import PurePath

from pgversus.study.build_options import BuildOptions
from pgversus.study.comparison import Arm
from pgversus.study.servers import Checkout, Download, LocalPath, Release, RunningServer, ServerName, SourceBuild
from pgversus.study.settings import Setting
from pgversus.study.study import Study
from pgversus.text.redaction import without_secrets


class _Kind(StrEnum):
    """The fields of HostAccess."""

    PROGRAMS = "programs"
    CONNECTIONS = "connections"
    BUILDS = "builds"
    READS = "reads"
    WRITES = "writes"


_IN_WORDS = {
    _Kind.PROGRAMS: "runs programs",
    _Kind.CONNECTIONS: "connects to",
    _Kind.BUILDS: "builds",
    _Kind.READS: "reads",
    _Kind.WRITES: "writes",
}
_MOST_SHOWN = 12
_LONGEST, _LONGEST_COMMAND = 80, 200
# Maximum number of characters shown from a line after a match.


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAccess:
    """Everything in a study that needs the user's consent, without passwords."""

    programs: tuple[str, ...] = ()
    """Programs that the study runs, and anything that lets psql, pgbench or a server run programs."""
    connections: tuple[str, ...] = ()
    """Servers and addresses that the study connects to."""
    builds: tuple[str, ...] = ()
    """Servers whose source or compiler flags the study chooses."""
    reads: tuple[str, ...] = ()
    """Files outside the study's folder, and anything that lets psql or a server read other files."""
    writes: tuple[str, ...] = ()
    """Anything that lets psql or a server write files."""

    @property
    def is_none(self) -> bool:
        """Whether no consent is needed."""
        return not any(getattr(self, field.name) for field in fields(self))

    @property
    def lines(self) -> list[str]:
        """One line per kind: `runs programs: ...`."""
        found = ((words, getattr(self, kind)) for kind, words in _IN_WORDS.items())
        return [f"{words}: {_listed(entries)}" for words, entries in found if entries]


def host_access_of(study: Study, texts: Mapping[str, str], outside: Iterable[str]) -> HostAccess:
    """Return the host access of a study.

    texts: the contents of its setup files, by path.
    outside: files outside its folder, as the study names them.
    """
    found: dict[str, dict[str, None]] = {}
    for kind, what in dict.fromkeys((*_found(study, texts), *((_Kind.READS, name) for name in outside))):
        # On one line, so that no part of it can be mistaken for another line of the list.
        found.setdefault(kind, {})[without_secrets(" ".join(what.split()))] = None
    return HostAccess(**{kind: tuple(entries) for kind, entries in found.items()})


_Finding = tuple[_Kind, str]
_Phrase = tuple[re.Pattern[str], ...]


def _found(study: Study, texts: Mapping[str, str]) -> Iterator[_Finding]:
    arms = [arm for context in study.contexts for arm in context.comparison.arms]
    for server in study.servers:
        yield from _of_server(server)
    for setting in dict.fromkeys(setting for arm in arms for setting in arm.settings):
        yield from _of_setting(setting)
    for dump in dict.fromkeys(arm.dataset.restore for arm in arms if arm.dataset.restore is not None):
        yield _Kind.PROGRAMS, f"any that the SQL in {PurePath(dump.path).name} starts, which is not examined"
    for program in dict.fromkeys(_programs(arms)):
        yield _Kind.PROGRAMS, shlex.join(program)
    # Examine each text once, even if many treatments share it.
    for name, text, client in dict.fromkeys(_texts(arms, texts)):
        if client is _FirstReader.PSQL:
            yield from _of_psql(name, text)
        elif client is _FirstReader.PGBENCH:
            commands = _CONTINUED_LINE.sub(" ", text)
            yield from _matches(name, commands, {_Kind.PROGRAMS: ((_SHELL_OF_PGBENCH,),)})
        yield from _matches(name, text, _SQL)


class _FirstReader(StrEnum):
    """The program that interprets a text before the server does."""

    PSQL = "psql"
    PGBENCH = "pgbench"
    NONE = "none"


def _programs(arms: Iterable[Arm]) -> Iterator[tuple[str, ...]]:
    for workload in dict.fromkeys(arm.workload for arm in arms):
        yield from (step.program for step in workload.steps if step.program)


def _texts(arms: Iterable[Arm], texts: Mapping[str, str]) -> Iterator[tuple[str, str, _FirstReader]]:
    """Yield every text that contains SQL: its name, the text, and its first reader."""
    for dataset in dict.fromkeys(arm.dataset for arm in arms):
        for file in (*dataset.setup_files, *dataset.prepare):
            text = texts.get(file.path, "") if file.text is None else file.text
            yield PurePath(file.path).name, text, _FirstReader.PSQL
        yield from ((f"variable {name}", value, _FirstReader.NONE) for name, value in dataset.variables)
    for workload in dict.fromkeys(arm.workload for arm in arms):
        yield from ((step.name, step.sql, _FirstReader.NONE) for step in workload.steps if step.sql is not None)
        yield from (("verify", sql, _FirstReader.NONE) for sql in workload.verify)
        scripts = (*workload.scripts, *([workload.rewrite] if workload.rewrite is not None else []))
        yield from ((one.name, one.text, _FirstReader.PGBENCH) for one in scripts if one.text is not None)
        yield from ((f"variable {name}", value, _FirstReader.NONE) for name, value in workload.variables)


# Usual names of compilers, with optional target prefix and version suffix. Other names count as programs to run.
_COMPILER = re.compile(r"(?:[\w.]++-)*(?:gcc|clang|cc|icx|tcc)(?:-[\d.]+)?")
_HARMLESS_FLAG = re.compile(
    r"-(?:O[0-3sgz]?|Ofast|g[0-3]?|pipe|[DU]\w+(?:=\w+)?|std=[\w+]+|m[\w.-]+(?:=[\w.+-]+)?"
    r"|f(?!plugin)[\w-]+(?:=\w+)?|W[\w-]+(?:=\w+)?)"
)
"""A compiler flag that names no file and no program."""
_HARMLESS_OPTION = re.compile(r"[a-z0-9-]+(?:=\w[\w.-]*)?")
"""A configure option that names no path."""


def _of_server(server: ServerName) -> Iterator[_Finding]:
    match server:
        case RunningServer(uri=uri):
            yield _Kind.CONNECTIONS, uri
        case LocalPath(path=path):
            yield _Kind.PROGRAMS, f"the server in {path}"
        case SourceBuild(source=source, options=options):
            if isinstance(source, Download):
                yield _Kind.CONNECTIONS, source.address
            if isinstance(source, Download | LocalPath | Checkout) or not _are_harmless(options):
                yield _Kind.BUILDS, str(server)
            if options.compiler is not None and not _COMPILER.fullmatch(options.compiler):
                yield _Kind.PROGRAMS, f"cc={options.compiler}"
        case Release():
            pass


def _are_harmless(options: BuildOptions) -> bool:
    """Return whether compiler flags and configure options name no file and no program."""
    flags = (options.cflags or "").split()
    return all(map(_HARMLESS_FLAG.fullmatch, flags)) and all(map(_HARMLESS_OPTION.fullmatch, options.handed_on))


_SETTINGS = {
    _Kind.PROGRAMS: (
        "archive_cleanup_command",
        "archive_command",
        "archive_library",
        "dynamic_library_path",
        "extension_control_path",
        "jit_provider",
        "local_preload_libraries",
        "oauth_validator_libraries",
        "plperl.on_init",
        "plperl.on_plperl_init",
        "plperl.on_plperlu_init",
        "recovery_end_command",
        "restore_command",
        "session_preload_libraries",
        "shared_preload_libraries",
        "ssl_passphrase_command",
    ),
    _Kind.CONNECTIONS: ("listen_addresses", "primary_conninfo", "unix_socket_directories"),
    _Kind.READS: (
        "config_file",
        "data_directory",
        "hba_file",
        "ident_file",
        "krb_server_keyfile",
        "ssl_ca_file",
        "ssl_cert_file",
        "ssl_crl_dir",
        "ssl_crl_file",
        "ssl_dh_params_file",
        "ssl_key_file",
    ),
    _Kind.WRITES: ("external_pid_file", "log_directory", "log_filename", "stats_temp_directory"),
}
"""Settings that make a server run programs, load libraries, connect, or read and write files."""
_KIND_OF_SETTING = {name: kind for kind, names in _SETTINGS.items() for name in names}


def _of_setting(setting: Setting) -> Iterator[_Finding]:
    kind = _KIND_OF_SETTING.get(setting.name.lower())
    if kind is not None:
        yield kind, f"{setting.name} = {setting.value}"


# Repetitions are bounded or have an unambiguous end, so that matching takes linear time.
_GAP = re.compile(r"\s+|(--)|(/\*)|\*/")
"""White space and starts of comments. Comments nest, so the ends of outer ones are skipped as well."""
_STRING = r"(?:[eu]&?)?(?:'|\$\w{0,60}\$|:['\"])"
_UNTRUSTED = r"(?:(?:[eu]&?)?['\"]|\$\w{0,60}\$)?(?:c|internal|pl\w{1,30}u|plsh|plr|pljava)\b"
_ELSEWHERE = r"(?:(?:(?:[eu]&?)?'|\$\w{0,60}\$)(?:/|[^'$\n]*\.\./)|[eu]&?'[^'\n]*\\)"
"""A path that leads outside the server's data directory, or may do so because some of its characters are escaped."""


def _sql(*patterns: str) -> _Phrase:
    """Return a phrase, whose parts may be separated by white space and comments."""
    return tuple(re.compile(one, re.IGNORECASE) for one in patterns)


def _settings_named(kind: _Kind) -> str:
    return rf"\b(?:{'|'.join(map(re.escape, _SETTINGS[kind]))})\b"


_SQL = {
    _Kind.PROGRAMS: (
        _sql(r"\b(?:from|to)\b", "program", rf"{_STRING}|:"),
        _sql(r"\bload", _STRING),
        _sql(r"\blanguage", _UNTRUSTED),
        _sql(r"\bextension\b", _UNTRUSTED),
        _sql(r"\bextension\b", r"if\b", r"not\b", r"exists\b", _UNTRUSTED),
        # Its output plugin is a library, given by name or path.
        _sql(r"\bpg_create_logical_replication_slot\b"),
        _sql(_settings_named(_Kind.PROGRAMS)),
    ),
    _Kind.CONNECTIONS: (
        _sql(rf"\bdblink|(?<!\bfile)_fdw\b|{_settings_named(_Kind.CONNECTIONS)}"),
        _sql(r"\bcreate\b", r"subscription\b"),
    ),
    _Kind.READS: (
        _sql(r"\bfrom\b", rf"{_ELSEWHERE}|:'"),
        _sql(r"\b(?:pg_read_file|pg_read_binary_file|pg_ls_dir|pg_stat_file|lo_import|file_fdw)\b"),
        _sql(_settings_named(_Kind.READS)),
    ),
    _Kind.WRITES: (
        _sql(r"\bto\b", _ELSEWHERE),
        _sql(r"\blocation\b", _ELSEWHERE),
        _sql(r"\b(?:lo_export|pg_file_write|pg_file_rename|pg_file_unlink)\b"),
        _sql(_settings_named(_Kind.WRITES)),
    ),
}
"""Statements that reach outside the database. They are found anywhere, also inside comments and strings."""

_CONTINUED_LINE = re.compile(r"\\\r?\n")
"""White space to pgbench, even between a backslash and the command."""
_SHELL_OF_PGBENCH = re.compile(r"\\[ \t\r\f\v]*(?:set)?shell\b", re.IGNORECASE)
_COMMAND_OF_PSQL = re.compile(r"\\(!|[A-Za-z_]++(?=[\s\\|/(]|\Z))(?=[^\S\n]*+([^\n\\]*))")
"""A backslash command and its arguments up to the next one; also in strings, because their ends are uncertain."""
_COMMANDS_OF_PSQL = {
    **dict.fromkeys(("!", "e", "edit", "ef", "ev", "setenv"), _Kind.PROGRAMS),
    **dict.fromkeys(("c", "connect"), _Kind.CONNECTIONS),
    **dict.fromkeys(
        ("cd", "copy", "getenv", "i", "include", "include_relative", "ir", "lo_import"),
        _Kind.READS,
    ),
    **dict.fromkeys(("g", "gx", "lo_export", "o", "out", "s", "w", "write"), _Kind.WRITES),
}
_ROWS_OF_THE_FILE = re.compile(r'[\w."]+\s*(?:\([\w\s,."]*\)\s*)?\b(?:from|to)\s+p?std(?:in|out)\b', re.IGNORECASE)
_PROGRAM = re.compile(r"\bprogram\b", re.IGNORECASE)


def _of_psql(name: str, text: str) -> Iterator[_Finding]:
    for found in _COMMAND_OF_PSQL.finditer(text):
        kind = _kind_of_command(found[1], found[2])
        if kind is not None:
            rest = text[found.start(2) : found.start(2) + _LONGEST_COMMAND].partition("\n")[0]
            yield kind, f"{name}: {found[0]} {rest}"
    for line in text.split("\n"):
        _, backslash, rest = line.partition("\\")
        if backslash and "`" in rest:
            yield _Kind.PROGRAMS, f"{name}: \\{rest[:_LONGEST]}"


def _kind_of_command(command: str, arguments: str) -> _Kind | None:
    kind = _COMMANDS_OF_PSQL.get(command)
    if command in ("g", "gx"):
        # Options are in parentheses; without a file, the command only sends the statement.
        goes_to = re.sub(r"^\([^)]*\)", "", arguments).strip()
        kind = _Kind.WRITES if goes_to else None
    if command == "copy":
        if _ROWS_OF_THE_FILE.match(arguments):
            return None
        return _Kind.PROGRAMS if _PROGRAM.search(arguments) else _Kind.READS
    return _Kind.PROGRAMS if kind is _Kind.WRITES and "|" in arguments else kind


def _matches(name: str, text: str, phrases: Mapping[_Kind, Iterable[_Phrase]]) -> Iterator[_Finding]:
    gaps = _Gaps(text)
    for kind, alternatives in phrases.items():
        for start, end in sorted({place for phrase in alternatives for place in gaps.places(phrase)}):
            rest = text[end : end + _LONGEST].partition("\n")[0]
            yield kind, f"{name}: {text[start:end]}{rest}"


class _Gaps:
    """Cached ends of white space and comments, so that repeated words do not cause repeated searches."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ends: dict[int, int] = {}
        self._line = self._comment = range(0)

    def places(self, phrase: _Phrase) -> Iterator[tuple[int, int]]:
        """Yield start and end of each match of the phrase."""
        first, *others = phrase
        for found in first.finditer(self._text):
            end = found.end()
            for other in others:
                part = other.match(self._text, self._end(end))
                if part is None:
                    break
                end = part.end()
            else:
                yield found.start(), end

    def _end(self, start: int) -> int:
        passed = []
        position = start
        while position not in self._ends:
            passed.append(position)
            gap = _GAP.match(self._text, position)
            if gap is None:
                self._ends[position] = position
            elif gap[1]:
                position = self._end_of_line(gap.end())
            elif gap[2]:
                position = self._end_of_comment(gap.end())
            else:
                position = gap.end()
        end = self._ends[position]
        self._ends |= dict.fromkeys(passed, end)
        return end

    # Both cache the last range, because other matches may start in the same line or comment.

    def _end_of_line(self, start: int) -> int:
        if start not in self._line:
            self._line = range(start, self._found("\n", start) + 1)
        return self._line.stop - 1

    def _end_of_comment(self, start: int) -> int:
        if start not in self._comment:
            self._comment = range(start, self._found("*/", start) + 1)
        return self._comment.stop - 1

    def _found(self, what: str, start: int) -> int:
        found = self._text.find(what, start)
        return len(self._text) if found < 0 else found


def _listed(entries: tuple[str, ...]) -> str:
    more = f"; and {len(entries) - _MOST_SHOWN} more" if len(entries) > _MOST_SHOWN else ""
    return "; ".join(entries[:_MOST_SHOWN]) + more
