r"""The statements of a script as pgbench sends them: pgbench itself fills its variables, and tells what it sends.

Nothing of pgbench's language is done again here, neither its expressions nor \if nor \gset: a script is run once by
pgbench, in a transaction that is rolled back, with the words that it prints for who looks for errors in it.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pgversus.study.workload import QueryMode
from pgversus.text.sql import QUOTE, Quotes, without_comments

_TOLD = re.compile(r"^pgbench: (?:debug: )?client \d+ (sending|\w+)\b ?", re.MULTILINE)
_SENDING = "sending"
_HEAD_OF_BUILTIN = re.compile(r"\A-- .*\n")
_TOKEN = re.compile(
    rf"(?P<opening>{QUOTE})|(?P<meta>^[ \t]*\\(?:[^\n\\]++|\\\n?)*+)|(?P<end>;|\\[ag]set[^\n]*)", re.MULTILINE
)
_PARAMETER = re.compile(r"\$\d+")
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
    first, *others = _PARAMETER.split(template)
    numbers = [found[1:] for found in _PARAMETER.findall(template)]
    if numbers != [str(number + 1) for number in range(len(others))]:
        return None
    if not others:
        return () if text == first else None
    # Each value is as short as the next piece allows; a regular expression would go on to try all the longer ones.
    values, position, end = [], len(first), len(text) - len(others[-1])
    for piece in others[:-1]:
        found = text.find(piece, position, end)
        if found < 0:
            return None
        values.append(text[position:found])
        position = found + len(piece)
    is_whole = position <= end and text.startswith(first) and text.endswith(others[-1])
    return (*values, text[position:end]) if is_whole else None


def in_one_transaction(script: str) -> str:
    """The script as one transaction that is rolled back, whatever transactions it had.

    Without its pauses, and without pipelines, in which pgbench does not fill variables.
    """
    kept = [text for text in _parts(script) if not (_is_of_transaction(text) or _LEFT_OUT.match(text))]
    return "".join(["BEGIN;\n", *kept, "\n;ROLLBACK;\n" if kept and _is_open(kept[-1]) else "\nROLLBACK;\n"])


def _parts(script: str) -> Iterator[str]:
    """Statements, each with its end, and commands of pgbench's own; together they are the script."""
    quotes = Quotes(script)
    begin = position = 0
    is_open = False
    """Whether a statement has begun, so that a backslash is part of it."""
    while (token := _TOKEN.search(script, position)) is not None:
        position = token.end()
        if token["opening"] is not None:
            closed = quotes.end(token["opening"], position)
            position = token.start() + 1 if closed is None else closed
        elif token["end"] is not None:
            yield script[begin:position]
            begin, is_open = position, False
        elif not is_open:
            before = script[begin : token.start()]
            is_open = bool(without_comments(before).strip())
            if not is_open:
                yield before
                yield token[0]
                begin = position
    yield script[begin:]


def _is_of_transaction(text: str) -> bool:
    return _TRANSACTION.match(without_comments(text, " ")) is not None


def _is_open(text: str) -> bool:
    """Whether it is a statement without its end."""
    bare = without_comments(text).strip()
    return bool(bare) and not bare.endswith(";") and not bare.startswith("\\")
