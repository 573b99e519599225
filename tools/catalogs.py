"""Collect translatable sentences from code and templates, merge them into the catalogs, and compile these.

python -m tools.catalogs updates every catalog: it adds new sentences untranslated and removes obsolete ones.
"""

import io
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

_SOURCE = Path(__file__).parent.parent / "src" / "pgversus"
_LOCALE = _SOURCE / "locale"
_METHODS = [("**/templates/**.html", "jinja2.ext:babel_extract"), ("**.py", "python")]
_KEYWORDS = {"_": None, "N_": None, "ngettext": (1, 2)}


def sentences() -> Catalog:
    """Return every translatable sentence of the program."""
    found = Catalog(fuzzy=False)
    for _, _, message, _, _ in extract_from_dir(_SOURCE, _METHODS, keywords=_KEYWORDS):
        found.add(message)
    return found


def catalog_files() -> Iterator[Path]:
    """Return the editable catalogs, one per language."""
    return _LOCALE.glob("*/LC_MESSAGES/pgversus.po")


def read(path: Path) -> Catalog:
    """Read a catalog from disk."""
    with path.open("rb") as file:
        return read_po(file, locale=path.parent.parent.name)


def current(path: Path) -> Catalog:
    """Return the catalog with exactly the sentences of the program, with existing translations."""
    translated, catalog = read(path), Catalog(locale=path.parent.parent.name, fuzzy=False, header_comment="")
    for message in sentences():
        if message.id:
            known = translated.get(message.id)
            catalog.add(message.id, known.string if known is not None else None)
    return catalog


def as_text(catalog: Catalog) -> bytes:
    """Return the editable text, sorted by sentence so that a new one moves no other."""
    written = io.BytesIO()
    write_po(written, catalog, omit_header=True, no_location=True, sort_output=True, width=0)
    # The header declares the encoding.
    return b'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n' + written.getvalue()


def compiled(catalog: Catalog) -> bytes:
    """Return the compiled catalog that is read at run time."""
    undated = _Undated(locale=catalog.locale, fuzzy=False)
    for message in catalog:
        if message.id:
            undated.add(message.id, message.string)
    written = io.BytesIO()
    write_mo(written, undated)
    return written.getvalue()


class _Undated(Catalog):
    """A catalog without dates in its header, so that the same sentences always give the same file."""

    def __iter__(self) -> Iterator[Message]:
        """Yield the header, then the sentences."""
        _, *messages = super().__iter__()
        yield Message("", f"Content-Type: text/plain; charset=utf-8\nPlural-Forms: {self.plural_forms}\n")
        yield from messages


def main() -> None:
    """Update and compile every catalog."""
    for path in catalog_files():
        catalog = current(path)
        path.write_bytes(as_text(catalog))
        path.with_suffix(".mo").write_bytes(compiled(catalog))
        lacking = sum(1 for message in catalog if message.id and not _is_translated(message.string))
        print(f"{path.parent.parent.name}: {len(catalog)} sentences, {lacking} of them not translated")  # noqa: T201


def _is_translated(string: object) -> bool:
    return all(string) if isinstance(string, tuple | list) else bool(string)


if __name__ == "__main__":
    main()
