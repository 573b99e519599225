"""What a page may do: run its own scripts, known by their hashes, and nothing else; ask nobody for anything.

Texts of users cannot become a script even where one escaped its place: what has none of these hashes does not run.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import Any

_SCRIPT_ENDS = ("</script", "<!--")


def inlined(script: str) -> str:
    """A script as it may stand inside a page; ValueError for one that would end before its end."""
    text = script.replace("\r\n", "\n").replace("</script", "<\\/script")
    if any(end in text for end in _SCRIPT_ENDS):
        raise ValueError("a script that holds the end of a script")
    return text


def policy(scripts: Sequence[str], style: str) -> str:
    """The Content-Security-Policy of a page with these scripts and this style sheet."""
    hashes = " ".join(_hash(script) for script in scripts) or "'none'"
    return (
        f"default-src 'none'; script-src {hashes}; style-src {_hash(style)}; style-src-attr 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )


def data_text(value: Any) -> str:
    """A value as JSON that may stand inside a script element: nothing in it ends that."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
