r"""The statements of a script as pgbench sends them: pgbench itself fills its variables, and tells what it sends.

Nothing of pgbench's language is done again here, neither its expressions nor \if nor \gset: a script is run once by
pgbench, in a transaction that is rolled back, with the words that it prints for who looks for errors in it.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pgversus.study.workload import QueryMode

_TOLD = re.compile(r"^pgbench: (?:debug: )?client \d+ (sending|\w+)\b ?", re.MULTILINE)
_SENDING = "sending"
_HEAD_OF_BUILTIN = re.compile(r"\A-- .*\n")
_TOKEN = re.compile(
    r"'(?:[^']|'')*'"
    r'|"(?:[^"]|"")*"'
    r"|(?P<dollars>\$\w*\$).*?(?P=dollars)"
    r"|--[^\n]*"
    r"|/\*.*?\*/"
    r"|(?P<meta>^[ \t]*\\(?:[^\n\\]|\\\n|\\)*)"
    r"|(?P<end>;|\\[ag]set[^\n]*)",
    re.MULTILINE | re.DOTALL,
)
_PARAMETER = re.compile(r"\$\d+")
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_TRANSACTION = re.compile(
    r"\s*(?:BEGIN|START\s+TRANSACTION|COMMIT|END|ABORT|ROLLBACK)\b(?!\s+(?:TO|PREPARED)\b)", re.IGNORECASE
)
_LEFT_OUT = re.compile(r"\s*\\(?:startpipeline|endpipeline|syncpipeline|sleep)\b")


def shown_script_command(pgbench: Path, name: str) -> list[str]:
    """The argument list with which pgbench prints one of its built-in scripts, on standard error."""
    return [str(pgbench), f"--show-script={name}"]


def shown_script(text: str) -> str:
    """The script alone, of what was printed."""
    return _HEAD_OF_BUILTIN.sub("", text)


def telling_command(  # what pgbench is told besides is that of the load
    *,
    pgbench: Path,
    conninfo: str,
    script: Path,
    query_mode: QueryMode,
    scale: int | None,
    variables: Sequence[tuple[str, str]],
    seed: int,
) -> list[str]:
    """The argument list with which pgbench runs a script once and tells each statement that it sends.

    query_mode: simple tells statements with their variables filled, extended with $1 and so on in their places.
    """
    return [
        str(pgbench),
        "-n",
        "--debug",
        *("-t", "1", "-M", query_mode.value),
        f"--random-seed={seed}",
        *(["-s", str(scale)] if scale is not None else []),
        *(word for name, value in variables for word in ("-D", f"{name}={value}")),
        *("-f", f"{script}@1"),
        conninfo,
    ]


def sent_statements(stderr: str) -> list[str]:
    """Every statement that pgbench told it has sent, but for the transaction around them."""
    told = list(_TOLD.finditer(stderr))
    starts = [*(match.start() for match in told), len(stderr)]
    sent = [
        stderr[match.end() : end].strip() for match, end in zip(told, starts[1:], strict=True) if match[1] == _SENDING
    ]
    return [text.rstrip(";").rstrip() for text in sent if not _TRANSACTION.match(text)]


def parameters_of(template: str, text: str) -> tuple[str, ...] | None:
    """What $1 and so on of a statement stand for in the same one with its variables filled; None where they differ.

    pgbench numbers them in their order; what is numbered otherwise stands in a text of the user's.
    """
    numbers = [int(found[1:]) for found in _PARAMETER.findall(template)]
    if numbers != list(range(1, len(numbers) + 1)):
        return None
    pieces = _PARAMETER.split(template)
    filled = re.fullmatch("(.*?)".join(map(re.escape, pieces)), text, re.DOTALL)
    return None if filled is None else filled.groups()


def in_one_transaction(script: str) -> str:
    """The script as one transaction that is rolled back, whatever transactions it had.

    Without its pauses, and without pipelines, in which pgbench does not fill variables.
    """
    kept = [text for text in _parts(script) if not (_is_of_transaction(text) or _LEFT_OUT.match(text))]
    return "".join(["BEGIN;\n", *kept, "\n;ROLLBACK;\n" if kept and _is_open(kept[-1]) else "\nROLLBACK;\n"])


def _parts(script: str) -> Iterator[str]:
    """Statements, each with its end, and commands of pgbench's own; together they are the script."""
    begin = 0
    for token in _TOKEN.finditer(script):
        if token["meta"] is not None and not _COMMENT.sub("", script[begin : token.start()]).strip():
            yield script[begin : token.start()]
            yield token[0]
            begin = token.end()
        elif token["end"] is not None:
            yield script[begin : token.end()]
            begin = token.end()
    yield script[begin:]


def _is_of_transaction(text: str) -> bool:
    return _TRANSACTION.match(_COMMENT.sub(" ", text)) is not None


def _is_open(text: str) -> bool:
    """Whether it is a statement without its end."""
    bare = _COMMENT.sub("", text).strip()
    return bool(bare) and not bare.endswith(";") and not bare.startswith("\\")
