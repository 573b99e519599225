"""The documents match the code."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = "\n".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.py")))
MESSAGES = (ROOT / "docs" / "messages.md").read_text()


def test_every_slug_is_documented_and_every_documented_slug_exists() -> None:
    in_code = set(re.findall(r'slug="([a-z-]+)"', SOURCE)) | set(re.findall(r'"([a-z]+-[a-z-]+)" if error?\S*', SOURCE))
    documented = set(re.findall(r"^\| ([a-z-]+) \|", MESSAGES, re.MULTILINE)) - {"slug", "---"}
    in_code |= set(re.findall(r'slug="[a-z-]+" if .* else "([a-z-]+)"', SOURCE)) | {"bug"}
    assert documented == in_code


def test_every_package_is_on_the_architecture_page() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    packages = {path.parent.name for path in (ROOT / "src" / "pgversus").glob("*/__init__.py")}
    assert {name for name in packages if f"`{name}/`" in page} == packages


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
