"""The documents match the code."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from pgversus.answers.answer import NOT_RESTORED, OTHER_ORDER, OTHER_ROWS, Caveat, Severity
from pgversus.report.caveats import SENTENCES

ROOT = Path(__file__).parents[2]
SOURCE = "\n".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.py")))
MESSAGES = (ROOT / "docs" / "messages.md").read_text()
IDENTIFIERS = {
    f" {' '.join(re.findall('[A-Z]?[a-z]+|[A-Z]+(?![a-z])', name)).lower()} "
    for path in (ROOT / "src").rglob("*.py")
    for node in ast.walk(ast.parse(path.read_text()))
    for field in ("name", "id", "attr", "arg")
    if isinstance(name := getattr(node, field, None), str)
}
"""The words of every identifier, each between spaces."""
DOMAIN = ("answers", "data", "engine", "plans", "records", "stats", "store", "study", "workload")
EVERYDAY = frozenset(
    {
        *("access", "analysis", "candidate", "change", "choices", "command", "digest", "entry", "environment", "error"),
        *("fact", "kind", "lazy", "log", "mapping", "matching", "measurement", "metadata", "mode", "model", "names"),
        *("output", "path", "problem", "record", "rule", "section", "selection", "summary", "system", "table", "thing"),
        # Parts of compound names, and PostgreSQL's own words.
        *("bitmap", "bounded", "captured", "checkout", "comparable", "decided", "download", "end", "explained"),
        *("expressions", "failed", "hung", "installed", "invocation", "loading", "local", "manner", "no"),
        *(
            "own",
            "query",
            "raw",
            "row",
            "sample",
            "sampled",
            "sided",
            "skipped",
            "source",
            "split",
            "stored",
            "subplan",
        ),
        *(
            "dry",
            "latencies",
            "method",
            "name",
            "returned",
            "transaction",
            "unanswered",
            "unlike",
            "unreadable",
            "until",
        ),
        *("finished", "joined", "lost", "this", "warning", "watch"),
    }
)
"""Words in the names of classes that need no explanation."""


def test_every_slug_is_documented_and_every_documented_slug_exists() -> None:
    in_code = set(re.findall(r'slug="([a-z-]+)"', SOURCE)) | set(re.findall(r'"([a-z]+-[a-z-]+)" if error?\S*', SOURCE))
    documented = set(re.findall(r"^\| ([a-z-]+) \|", MESSAGES, re.MULTILINE)) - {"slug", "---"}
    in_code |= set(re.findall(r'slug="[a-z-]+" if .* else "([a-z-]+)"', SOURCE)) | {"bug"}
    in_code |= set(re.findall(r'(?:about|between|_one_sided)\(\s*"([a-z-]+)"', SOURCE)) | {
        NOT_RESTORED,
        OTHER_ROWS,
        OTHER_ORDER,
    }
    assert documented == in_code


def test_every_caveat_has_a_sentence() -> None:
    caveats = MESSAGES.partition("## Caveats")[2]
    documented = set(re.findall(r"^\| ([a-z-]+) \|", caveats, re.MULTILINE)) - {"slug"}
    assert documented == SENTENCES.keys() | {"not-steady"}


def test_every_caveat_has_its_severity() -> None:
    rows = re.findall(r"^\| ([a-z-]+) \| ([a-z]+) \|", MESSAGES.partition("## Caveats")[2], re.MULTILINE)[1:]
    assert dict(rows) == {slug: Caveat(slug=slug).severity.value for slug, _severity in rows}
    assert {severity for _slug, severity in rows} == set(Severity)


def test_the_glossary_has_every_term_of_the_code_and_no_other() -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text()
    terms = [term for row in re.findall(r"^\| ([^|]+) \|", glossary, re.MULTILINE)[1:] for term in row.split(", ")]
    words = set(re.findall("[a-z]+", glossary.lower()))
    unknown = {
        (name, word)
        for package in DOMAIN
        for path in (ROOT / "src" / "pgversus" / package).rglob("*.py")
        for name in re.findall(r"^class ([A-Z]\w+)", path.read_text(), re.MULTILINE)
        for word in map(str.lower, re.findall("[A-Z][a-z]+", name))
        if not {word, word.removesuffix("s"), word.removesuffix("s").removesuffix("e")} & (words | EVERYDAY)
    }
    assert unknown == set(), "explain them in docs/glossary.md"
    bare = (re.sub(r" \(.*\)| of a plan", "", term) for term in terms)
    assert [term for term in bare if not is_in_code(term.lower())] == []


def is_in_code(term: str) -> bool:
    """Return whether an identifier contains the words of a term one after the other, in the singular or plural."""
    forms = (term, f"{term}s", re.sub("y$", "ies", term))
    return any(f" {form} " in identifier for form in forms for identifier in IDENTIFIERS)


@pytest.mark.parametrize("term", ["car", "corn", "era", "lean", "replica"])
def test_parts_of_words_and_texts_are_not_terms_of_the_code(term: str) -> None:
    assert term in SOURCE.lower()
    assert not is_in_code(term)


def test_every_package_is_on_the_architecture_page() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    packages = {path.parent.name for path in (ROOT / "src" / "pgversus").glob("*/__init__.py")}
    assert {name for name in packages if f"`{name}/`" in page} == packages


def test_no_class_name_is_used_twice() -> None:
    names = Counter(re.findall(r"^class (\w+)", SOURCE, re.MULTILINE))
    assert [name for name, count in names.items() if count > 1] == []


def test_every_package_lists_its_files() -> None:
    for listing in sorted((ROOT / "src" / "pgversus").rglob("*/__init__.py")):
        text = listing.read_text()
        names = {path.name for path in listing.parent.glob("*.py")} - {"__init__.py"}
        names |= {f"{path.parent.name}/" for path in listing.parent.glob("*/__init__.py")}
        assert {name for name in names if name in text} == names, listing


def test_every_make_target_named_in_a_document_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for name in ("README.md", "CONTRIBUTING.md", "docs/statistics.md"):
        named = set(re.findall(r"`(?:[A-Z_]+=1 )?make ([a-z-]+)`", (ROOT / name).read_text()))
        assert named <= targets, name
