"""The catalogs of sentences: collected from code and templates, held against what is translated, compiled.

python -m tools.catalogs brings every catalog up to date: new sentences come in untranslated, ones that are gone go.
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
    """Every sentence of the program."""
    found = Catalog(fuzzy=False)
    for _, _, message, _, _ in extract_from_dir(_SOURCE, _METHODS, keywords=_KEYWORDS):
        found.add(message)
    return found


def catalog_files() -> Iterator[Path]:
    """The translated ones, as people edit them."""
    return _LOCALE.glob("*/LC_MESSAGES/pgversus.po")


def read(path: Path) -> Catalog:
    """A catalog as it is on disk."""
    with path.open("rb") as file:
        return read_po(file, locale=path.parent.parent.name)


def current(path: Path) -> Catalog:
    """The catalog with exactly the sentences of the program, those that it has translated with their translation."""
    translated, catalog = read(path), Catalog(locale=path.parent.parent.name, fuzzy=False, header_comment="")
    for message in sentences():
        if message.id:
            known = translated.get(message.id)
            catalog.add(message.id, known.string if known is not None else None)
    return catalog


def as_text(catalog: Catalog) -> bytes:
    """As people edit it: by sentence, so that a new one moves no other."""
    written = io.BytesIO()
    write_po(written, catalog, omit_header=True, no_location=True, sort_output=True, width=0)
    # Without the header nobody would know the encoding.
    return b'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n' + written.getvalue()


def compiled(catalog: Catalog) -> bytes:
    """As it is read at run time."""
    undated = _Undated(locale=catalog.locale, fuzzy=False)
    for message in catalog:
        if message.id:
            undated.add(message.id, message.string)
    written = io.BytesIO()
    write_mo(written, undated)
    return written.getvalue()


class _Undated(Catalog):
    """With nothing in its header but what is read: the same sentences make the same file on any day."""

    def __iter__(self) -> Iterator[Message]:
        """The header first."""
        _, *messages = super().__iter__()
        yield Message("", f"Content-Type: text/plain; charset=utf-8\nPlural-Forms: {self.plural_forms}\n")
        yield from messages


def main() -> None:
    """Write every catalog anew."""
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
