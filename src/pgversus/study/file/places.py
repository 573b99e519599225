"""Where in the text each key stands: tomllib gives the values, tree-sitter the lines."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import tree_sitter_toml
from tree_sitter import Language, Node, Parser

from pgversus.study.file.values import as_key

Path = tuple[str | int, ...]
"""The keys and indexes that lead to a value of the document."""

_KEYS = ("bare_key", "quoted_key")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Place:
    """Where something stands; in the order of the file."""

    line: int
    """From 1; 0 for what is not in the file at all."""
    column: int
    header: str = field(compare=False, default="")
    """The table as the file has it: `[factors]`; empty above the first table."""
    inner: Path = field(compare=False, default=())
    """What stands in it, a path of its own: written down where somebody asks, since a file has many items."""

    def within(self, rest: Path) -> "Place":
        """The same place for something inside of it that has none of its own."""
        return replace(self, inner=(*self.inner, *rest))

    def __str__(self) -> str:
        """`line 12, [factors] work_mem`."""
        line = f"line {self.line}" if self.line else ""
        return ", ".join(filter(None, (line, f"{self.header} {_joined(self.inner)}".strip())))


def _joined(path: Path) -> str:
    """`work_mem`, `scripts, item 2, weight`; empty for the table itself."""
    key = ""
    for part in path:
        word = f"item {part + 1}" if isinstance(part, int) else as_key(part)
        separator = ", " if isinstance(part, int) or key.rpartition(", ")[2].startswith("item ") else "."
        key = f"{key}{separator}{word}" if key else word
    return key


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The place of everything in a document."""

    found: Mapping[Path, Place]
    origins: Mapping[Path, Path] = field(default_factory=dict)
    """For what a profile has replaced: where its new value stands in the file."""

    def of(self, path: Path) -> Place:
        """The place of a path, or of the nearest thing around it that has one."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.origins:
                path = self.origins[path[:length]] + path[length:]
                break
        for length in range(len(path), 0, -1):
            if path[:length] in self.found:
                return self.found[path[:length]].within(path[length:])
        header = ".".join(as_key(str(part)) for part in path[:-1])
        return Place(line=0, column=0, header=f"[{header}]" if header else "").within(path[-1:])

    def with_origins(self, origins: Mapping[Path, Path]) -> Self:
        """The same file for a document into which a profile is merged."""
        return replace(self, origins=origins)


def find_places(text: str) -> Places:
    """The place of every key and list item in a text that tomllib accepts; the first one where tables are parted."""
    tree = Parser(Language(tree_sitter_toml.language())).parse(text.encode(errors="replace"))
    places: dict[Path, Place] = {}
    rows: dict[Path, int] = {}
    for node in tree.root_node.children:
        if node.type == "pair":
            _note_pair(places, node, base=(), header="", inner=())
        elif node.type in ("table", "table_array_element"):
            _note_table(places, rows, node)
    return Places(found=places)


def _note_table(places: dict[Path, Place], rows: dict[Path, int], node: Node) -> None:
    names = _names(next(child for child in node.children if child.type in (*_KEYS, "dotted_key")))
    base: Path = ()
    for name in names[:-1]:
        base = (*base, name)
        # [rows.part] below [[rows]] belongs to the last row.
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
        # A table that has no header of its own stands where its first key does.
        places.setdefault(path[:length], place)


def _names(node: Node) -> list[str]:
    return list(_each_name(node))


def _each_name(node: Node) -> Iterator[str]:
    if node.type == "dotted_key":
        for child in node.children:
            yield from _each_name(child)
    elif node.type in _KEYS:
        written = (node.text or b"").decode()
        yield written if node.type == "bare_key" else next(iter(tomllib.loads(f"{written} = 0")))
