"""TOML text as plain tables, the line of every key, and values as shown in messages.

tomllib provides the values, tree-sitter the lines.
"""

import datetime as dt
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import tree_sitter_toml
from tree_sitter import Language, Node, Parser

from pgversus.errors import StudyError, StudyFileError
from pgversus.text.documents import is_nested_deeper
from pgversus.text.redaction import value_without_secrets, without_secrets

_LONGEST = 60
_LARGEST = 2**63


def shown(value: Any) -> str:
    """Return a value as TOML on one line, shortened, without passwords; for a table or list, only its kind."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(_shortened(without_secrets(value)), ensure_ascii=False)
    if isinstance(value, int | float):
        # Python limits the digits of integers that it converts to text.
        return str(value) if abs(value) < _LARGEST or isinstance(value, float) else "a number beyond 64 bits"
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return _kind(value)


def shown_value(name: str, value: Any) -> str:
    """Return the value of a key like `shown`; hidden if the key names a secret."""
    return shown(value_without_secrets(name, value) if isinstance(value, str) else value)


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    return "a table" if isinstance(value, Mapping) else "nothing"


def as_toml(value: Any) -> str:
    """Return the value as TOML: text, numbers, booleans, lists and tables of them."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{as_key(key)} = {as_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(as_toml(item) for item in value) + "]"
    return shown(value)


def as_key(name: str) -> str:
    """Return the name as a TOML key, quoted if necessary."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


MOST_LEVELS = 16
"""Maximum nesting of tables. The schema needs six; the limit makes recursion over documents safe."""
_LONGEST_KEY = 1000
"""Maximum length of a key, which is repeated in every message about its value."""
_DOTTED = re.compile(r"(?<![A-Za-z0-9_-])(?:(?:[A-Za-z0-9_-]++|\"[^\"\n]*+\"|'[^'\n]*+')[ \t]*+\.[ \t]*+){200}")
"""A key with too many parts: the time that tomllib takes is quadratic in their number."""

_PLACE = re.compile(r"(.*) \(at (?:line ([0-9]+), column ([0-9]+)|end of document)\)", re.DOTALL)
_TWICE = re.compile(r"overwrite|twice|mutate")
# tomllib's messages for a duplicate key or table.


def parse_document(text: str, file: str) -> Mapping[str, Any]:
    """Return the document as nested dicts and lists; StudyFileError for invalid TOML."""
    if _DOTTED.search(text):
        raise _too_deep(file)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(text, file, str(error)) from None
    except (RecursionError, ValueError):
        # ValueError: a number with thousands of digits.
        raise _refused(file, "a value that is nested too deeply, or a number that is too long") from None
    if is_nested_deeper(document, MOST_LEVELS):
        raise _too_deep(file)
    if _has_long_key(document):
        raise _refused(file, f"a key with more than {_LONGEST_KEY} characters")
    return document


def _too_deep(file: str) -> StudyFileError:
    return _refused(file, f"tables nested more than {MOST_LEVELS} deep")


def _syntax_error(text: str, file: str, message: str) -> StudyFileError:
    match = _PLACE.fullmatch(message)
    lines = text.replace("\r\n", "\n").split("\n")
    if match is None:
        return _refused(file, message)
    line, column = (int(match[2]), int(match[3])) if match[2] else (len(lines), len(lines[-1]) + 1)
    written = lines[line - 1] if line <= len(lines) else ""
    return _refused(f"{file}, line {line}, column {column}", _found(written, column), because=match[1])


def _found(line: str, column: int) -> str:
    if without_secrets(line) != line:
        # A part of the line could be a part of a password that no pattern recognizes.
        return shown(line.strip())
    before, rest = line[: column - 1].strip(), line[column - 1 :].strip()
    if rest:
        return shown(rest)
    return f"the end of the line, after {shown(before)}" if before else "the end of the line"


def _refused(where: str, found: str, *, because: str = "") -> StudyFileError:
    said = f": {because[:1].lower()}{because[1:]}" if because else ""
    problem = StudyError(
        without_secrets(f"invalid TOML{said}"),
        slug="study-file-syntax",
        where=where,
        found=found,
        expected="TOML: key = value, text in quotes, [table]",
        to_do="use each key and each table only once"
        if _TWICE.search(because)
        else 'quote text and write lists in brackets: server = ["16.12", "17.8"]',
    )
    # Nothing else can be checked, so this is the only problem.
    return StudyFileError(
        "the study file has 1 problem", slug="study-file", where=where.partition(",")[0], problems=(problem,)
    )


def _has_long_key(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_has_long_key, value))
    if not isinstance(value, Mapping):
        return False
    return any(len(key) > _LONGEST_KEY or _has_long_key(item) for key, item in value.items())


Path = tuple[str | int, ...]
"""The keys and indexes of a value in the document."""

_KEYS = ("bare_key", "quoted_key")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Place:
    """A location in the file, ordered by position."""

    line: int
    """Counted from 1; 0 for keys that are not in the file."""
    column: int
    header: str = field(compare=False)
    """The table header: `[factors]`; empty above the first table."""
    inner: Path = field(compare=False)
    """The path inside the table, formatted only on demand, because a file has many items."""

    def __str__(self) -> str:
        """Return a text like `line 12, [factors] work_mem`."""
        line = f"line {self.line}" if self.line else ""
        return ", ".join(filter(None, (line, f"{self.header} {_joined(self.inner)}".strip())))


def _joined(path: Path) -> str:
    """Return the path as text: `work_mem`, `scripts, item 2, weight`; empty for the table itself."""
    key = ""
    for part in path:
        word = f"item {part + 1}" if isinstance(part, int) else as_key(part)
        separator = ", " if isinstance(part, int) or key.rpartition(", ")[2].startswith("item ") else "."
        key = f"{key}{separator}{word}" if key else word
    return key


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPlaces:
    """The places of all keys and values in a document."""

    found: Mapping[Path, Place]
    origins: Mapping[Path, Path] = field(default_factory=dict)
    """For keys replaced by a profile: the paths of their new values in the file."""

    def of(self, path: Path) -> Place:
        """Return the place of a path, or of its nearest parent with a place."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.origins:
                path = self.origins[path[:length]] + path[length:]
                break
        for length in range(len(path), 0, -1):
            if path[:length] in self.found:
                place = self.found[path[:length]]
                return replace(place, inner=(*place.inner, *path[length:]))
        header = ".".join(as_key(str(part)) for part in path[:-1])
        return Place(line=0, column=0, header=f"[{header}]" if header else "", inner=path[-1:])


def find_places(text: str) -> KeyPlaces:
    """Return the places of all keys and list items in valid TOML; for a split table, its first place."""
    tree = Parser(Language(tree_sitter_toml.language())).parse(text.encode(errors="replace"))
    places: dict[Path, Place] = {}
    rows: dict[Path, int] = {}
    for node in tree.root_node.children:
        if node.type == "pair":
            _note_pair(places, node, base=(), header="", inner=())
        elif node.type in ("table", "table_array_element"):
            _note_table(places, rows, node)
    return KeyPlaces(found=places)


def _note_table(places: dict[Path, Place], rows: dict[Path, int], node: Node) -> None:
    names = list(_names(next(child for child in node.children if child.type in (*_KEYS, "dotted_key"))))
    base: Path = ()
    for name in names[:-1]:
        base = (*base, name)
        # [rows.part] after [[rows]] belongs to the last row.
        base = (*base, rows[base]) if base in rows else base
    base = (*base, names[-1])
    title = ".".join(as_key(name) for name in names)
    header = f"[{title}]"
    if node.type == "table_array_element":
        header = f"[[{title}]]"
        rows[base] = rows.get(base, -1) + 1
        base = (*base, rows[base])
    _note(places, base, node, header, ())
    for child in node.children:
        if child.type == "pair":
            _note_pair(places, child, base=base, header=header, inner=())


def _note_pair(places: dict[Path, Place], node: Node, *, base: Path, header: str, inner: Path) -> None:
    path = base
    for name in _names(node.children[0]):
        path, inner = (*path, name), (*inner, name)
        _note(places, path, node, header, inner)
    _note_inside(places, node.children[-1], path=path, header=header, inner=inner)


def _note_inside(places: dict[Path, Place], value: Node, *, path: Path, header: str, inner: Path) -> None:
    if value.type == "inline_table":
        for child in value.children:
            if child.type == "pair":
                _note_pair(places, child, base=path, header=header, inner=inner)
    elif value.type == "array":
        items = [child for child in value.children if child.is_named and child.type != "comment"]
        for index, item in enumerate(items):
            _note(places, (*path, index), item, header, (*inner, index))
            _note_inside(places, item, path=(*path, index), header=header, inner=(*inner, index))


def _note(places: dict[Path, Place], path: Path, node: Node, header: str, inner: Path) -> None:
    place = Place(line=node.start_point.row + 1, column=node.start_point.column, header=header, inner=inner)
    for length in range(1, len(path) + 1):
        # A table without a header is located at its first key.
        places.setdefault(path[:length], place)


def _names(node: Node) -> Iterator[str]:
    if node.type == "dotted_key":
        for child in node.children:
            yield from _names(child)
    elif node.type in _KEYS:
        written = (node.text or b"").decode()
        yield written if node.type == "bare_key" else next(iter(tomllib.loads(f"{written} = 0")))
