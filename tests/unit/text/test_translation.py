"""Sentences are looked up as a whole in the current language, and every catalog contains all of them."""

import ast
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.catalog import Catalog
from click.testing import CliRunner

from pgversus.cli.answer import language_shown
from pgversus.cli.main import pgversus
from pgversus.cli.options import locale_language
from pgversus.text.translation import (
    Language,
    _,
    both,
    either,
    language_in_use,
    listed,
    ngettext,
    together,
    use_language,
)
from tools.catalogs import as_text, catalog_files, compiled, current, read

CATALOGS = sorted(catalog_files())
SOURCE = Path(__file__).parents[3] / "src" / "pgversus"
TELLING = ("tell", "tell_number", "later")


def test_every_language_except_english_has_a_catalog() -> None:
    assert {path.parent.parent.name for path in CATALOGS} == set(Language) - {Language.ENGLISH}


@pytest.mark.parametrize("path", CATALOGS, ids=str)
def test_catalogs_are_up_to_date_and_compiled(path: Path) -> None:
    """`python -m tools.catalogs` updates the catalogs."""
    catalog = current(path)
    assert as_text(catalog) == path.read_bytes()
    assert compiled(catalog) == path.with_suffix(".mo").read_bytes()


@pytest.mark.parametrize("path", CATALOGS, ids=str)
def test_every_sentence_is_translated_with_its_placeholders(path: Path) -> None:
    for ids, strings in _messages(read(path)):
        assert all(strings), ids
        assert [_places(string) for string in strings] == [_places(ids[-1])] * len(strings), ids


def _messages(catalog: Catalog) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return each sentence and its translations, in all plural forms."""
    for message in catalog:
        if message.id:
            pair = (message.id, message.string or "")
            ids, strings = ((texts,) if isinstance(texts, str) else tuple(texts) for texts in pair)
            yield ids, strings


def _places(sentence: str) -> list[str]:
    return sorted(name for _, name, _, _ in Formatter().parse(sentence) if name is not None)


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_sentence_can_be_extracted(path: Path) -> None:
    """Calls inside f-strings are not extracted, and an f-string has no placeholders when it is looked up."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            assert not [call for call in ast.walk(node) if isinstance(_told(call), ast.Constant)], node.lineno
        assert not isinstance(_told(node), ast.JoinedStr), ast.unparse(node)


def _told(node: ast.AST) -> ast.expr | None:
    """Return the message of a call."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in TELLING and node.args:
        return node.args[0]
    return None


def test_english_is_the_default_and_is_restored() -> None:
    assert (language_in_use(), _("{seconds} s", seconds=3)) == (Language.ENGLISH, "3 s")
    with use_language(Language.JAPANESE):
        assert (language_in_use(), _("{seconds} s", seconds=3)) == (Language.JAPANESE, "3 秒")
        with use_language(Language.ENGLISH):
            assert _("{seconds} s", seconds=3) == "3 s"
        assert _("{seconds} s", seconds="{3}") == "{3} 秒"
    assert language_in_use() is Language.ENGLISH


def test_untranslated_text_is_returned_unchanged() -> None:
    with use_language(Language.JAPANESE):
        assert _("no such sentence of {name}", name="16") == "no such sentence of 16"


@pytest.mark.parametrize(
    ("language", "reported"),
    [
        (Language.ENGLISH, ["1 block, 1 min", "2 blocks, 1 min"]),
        (Language.JAPANESE, ["1 ブロック、1 分", "2 ブロック、1 分"]),
    ],
)
def test_plural_forms_follow_the_number(language: Language, reported: list[str]) -> None:
    with use_language(language):
        minute = _("{minutes} min", minutes=1)
        assert reported == [
            ngettext("{number} block, {duration}", "{number} blocks, {duration}", n, duration=minute) for n in (1, 2)
        ]


def test_parts_are_joined_as_the_language_requires() -> None:
    parts = ("a", "b", "c")
    assert (listed(parts), both(parts), either(parts)) == ("a, b, c", "a and b and c", "a or b or c")
    assert (together("A.", "", "B."), together(), listed(["a"])) == ("A. B.", "", "a")
    with use_language(Language.JAPANESE):
        assert (listed(parts), both(parts), either(parts)) == ("a、b、c", "a と b と c", "a または b または c")
        assert together("A。", "", "B。") == "A。B。"


def test_japanese_has_spaces_only_next_to_latin_letters_and_digits() -> None:
    with use_language(Language.JAPANESE):
        windows = ngettext("{number} window of {time}", "{number} windows of {time}", 8, time="1 s")
        assert windows.endswith("\N{FULLWIDTH RIGHT PARENTHESIS}")
        assert either(["20 ms", windows, "操作"]) == f"20 ms または{windows}または操作"
        assert _("{first} and {second}", first="4", second="8") == "4 と 8"
        assert _("{name} {baseline} vs {contender}", name="構成", baseline="gcc", contender="clang") == (
            "構成（gcc と clang）"  # noqa: RUF001 - as in the catalog
        )


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({}, Language.ENGLISH),
        ({"LANG": "ja_JP.UTF-8"}, Language.JAPANESE),
        ({"LANG": "ja"}, Language.JAPANESE),
        ({"LANG": "JA.utf8"}, Language.JAPANESE),
        ({"LANG": "C.UTF-8"}, Language.ENGLISH),
        ({"LANG": "de_DE.UTF-8"}, Language.ENGLISH),
        ({"LANG": "jam_JM"}, Language.ENGLISH),
        ({"LANG": "ja_JP.UTF-8", "LC_MESSAGES": "en_US.UTF-8"}, Language.ENGLISH),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "ja_JP.UTF-8"}, Language.JAPANESE),
        ({"LANG": "ja_JP.UTF-8", "LC_MESSAGES": "ja_JP.UTF-8", "LC_ALL": "C"}, Language.ENGLISH),
        ({"LANG": "ja_JP.UTF-8", "LC_ALL": ""}, Language.JAPANESE),
        ({"LC_CTYPE": "ja_JP.UTF-8"}, Language.ENGLISH),
    ],
)
def test_the_language_follows_the_locale_if_available(environment: dict[str, str], language: Language) -> None:
    assert locale_language(environment) is language


@pytest.mark.parametrize(
    ("as_json", "requested", "shown"),
    [
        (False, Language.JAPANESE, Language.JAPANESE),
        (False, Language.ENGLISH, Language.ENGLISH),
        (True, Language.JAPANESE, Language.ENGLISH),
    ],
)
def test_output_uses_the_requested_language_except_json(
    as_json: bool,  # noqa: FBT001 - a case
    requested: Language,
    shown: Language,
) -> None:
    assert language_shown({"as_json": as_json, "language": requested}) is shown


@pytest.mark.parametrize("command", ["compare", "run", "plans"])
def test_commands_accept_all_available_languages(command: str) -> None:
    reported = CliRunner().invoke(pgversus, [command, "--help"]).stdout
    assert "--lang [en|ja]" in reported
    assert CliRunner().invoke(pgversus, [command, "x", "--lang", "tlh"], standalone_mode=False).exit_code != 0
