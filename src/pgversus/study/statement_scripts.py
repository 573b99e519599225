"""pgbench scripts that execute statements of an application with given values, or plan them."""

import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import count

from pgversus.statements.literals import literal, parameters_in, with_literals
from pgversus.statements.secrets import has_secrets
from pgversus.statements.statement import NO_VALUES, RecordedStatement, Sample, StatementKind
from pgversus.study.workload import ROLLED_BACK, PlannedStatement, PreparedStatement, QueryMode, Script
from pgversus.text.sql import quoted_parts, with_blank_comments

SCRIPT = ".sql"
"""Suffix that is appended to a statement's name for the name of its script."""
IS_NEW = "pgversus_new"
"""The variable that is 1 until a session has prepared its statement."""
_PREPARED = "pgversus_statement"
_BEGIN = "BEGIN;\n"
_END_OF_ONCE = "\\endif\n"
_VARIABLE = re.compile(r"(?<!:):(?=[A-Za-z0-9_]|[^\x00-\x7F])")
"""Text that pgbench would read as a variable; a cast has two colons."""
_PREFIX = re.compile(r"(?<![\w$])(?:[uU]&|[nN])\Z")
"""The prefix of a string with Unicode escapes, or of a national string; E is a part of the string."""
_COLON = r"\\003A"
"""The Unicode escape of a colon, as a replacement."""


def script_of(statement: RecordedStatement, name: str, mode: QueryMode) -> Script:
    """Return the script that executes a statement with values of the application; writes are rolled back.

    Until its values are chosen, the script is only its text. mode: the query mode of the application. A query that
    calls a function may write as well: see `rolled_back`.
    """
    if statement.obstacle == NO_VALUES:
        return Script(name=f"{name}{SCRIPT}", text=statement.text)
    sample = statement.typical or Sample(text=statement.text)
    return script_of_sample(sample, statement.kind, name, mode)


def values_of(statement: RecordedStatement) -> tuple[str | None, ...]:
    """Return the values of the parameters with which `script_of` executes a statement, unless they may be secrets."""
    sample = statement.typical
    return () if sample is None or has_secrets(sample) else sample.values[: parameters_in(sample.text)]


def script_of_sample(sample: Sample, kind: StatementKind, name: str, mode: QueryMode = QueryMode.SIMPLE) -> Script:
    """Return the script that executes a statement with these values: in its text, unless the application prepares it.

    mode: the query mode of the application.
    """
    if mode is QueryMode.PREPARED and parameters_in(sample.text) and not has_secrets(sample):
        return _preparing(sample, kind, name)
    sql = _bare(pgbench_text(with_literals(sample.text, sample.values)))
    return Script(name=f"{name}{SCRIPT}", text=_transaction(sql, kind))


def _preparing(sample: Sample, kind: StatementKind, name: str) -> Script:
    """Return the script that prepares a statement once in each session and then executes it with these values.

    It uses SQL's PREPARE, not a mode of pgbench, to keep the numbers of parameters and to pass NULL and any text.
    """
    bare = _bare(with_blank_comments(sample.text))
    prepared = PreparedStatement(text=bare, values=sample.values[: parameters_in(bare)])
    values = pgbench_text(", ".join(map(literal, prepared.values)))
    once = f"PREPARE {_PREPARED} AS {pgbench_text(prepared.text)};\n\\set {IS_NEW} 0\n"
    always = _transaction(f"EXECUTE {_PREPARED} ({values})", kind)
    text = f"\\if :{IS_NEW}\n{once}{_END_OF_ONCE}{always}"
    return Script(name=f"{name}{SCRIPT}", text=text, prepared=prepared)


def with_literals_instead(script: Script) -> Script:
    """Return a script that executes the prepared statement of `script` with its values in the text."""
    assert script.prepared is not None  # noqa: S101 - required
    kind = StatementKind.WRITES if script.is_rolled_back else StatementKind.READS
    sample = Sample(text=script.prepared.text, values=script.prepared.values)
    return script_of_sample(sample, kind, script.name.removesuffix(SCRIPT))


def rolled_back(script: Script) -> Script:
    """Return the script with its statement in a transaction that is rolled back."""
    if script.is_rolled_back or script.text is None:
        return script
    once, end, statement = script.text.rpartition(_END_OF_ONCE) if script.prepared else ("", "", script.text)
    return replace(script, text=f"{once}{end}{_BEGIN}{statement}{ROLLED_BACK}")


def planning_script(scripts: Iterable[Script], name: str, others: Iterable[PlannedStatement] = ()) -> Script:
    """Return the script that plans the statements of these scripts without executing them.

    others: statements without values, of which only generic plans are compared.
    An error in one of them, which its own script reports, does not keep the others from being planned.
    """
    explained = [literal(f"EXPLAIN (COSTS OFF) {executed(script)}") for script in scripts]
    blocks = [f"BEGIN EXECUTE {text}; EXCEPTION WHEN OTHERS THEN NULL; END;\n" for text in explained]
    body = "".join(["BEGIN\n", *blocks, "END\n"])
    quote = next(text for number in count(1) if (text := f"$plan{number}$") not in body)
    return Script(name=f"{name}{SCRIPT}", text=f"DO {quote}\n{body}{quote};\n", planned=tuple(others))


def executed(script: Script) -> str:
    """Return the statement that a script executes, with its values."""
    if script.prepared is not None:
        return _bare(pgbench_text(script.prepared.with_values))
    return (script.text or "").removeprefix(_BEGIN).removesuffix(ROLLED_BACK).removesuffix(";\n")


def _bare(sql: str) -> str:
    """Return a statement without the semicolon and the space around it."""
    return sql.strip().rstrip("; \n\t")


def _transaction(sql: str, kind: StatementKind) -> str:
    return f"{_BEGIN}{sql};\n{ROLLED_BACK}" if kind is StatementKind.WRITES else f"{sql};\n"


def pgbench_text(sql: str) -> str:
    """Return equivalent SQL in which pgbench finds no variables. It looks for them even inside strings."""
    pieces, done = [], 0
    for begin, end in quoted_parts(sql):
        before, part = sql[done:begin], sql[begin:end]
        if (prefix := _PREFIX.search(before)) is not None and part[0] in "'\"" and _VARIABLE.search(part):
            # N'a' is a string like any other.
            before, part = before[: prefix.start()], _with_prefix(prefix[0], part)
        else:
            part = _quoted_text(part)
        pieces += [_VARIABLE.sub(": ", before), part]
        done = end
    return "".join([*pieces, _VARIABLE.sub(": ", sql[done:])])


def _with_prefix(prefix: str, part: str) -> str:
    """Return a string or quoted name with its prefix, without colons that would begin a pgbench variable."""
    if prefix in "nN":
        return _quoted_text(part)
    return f"{prefix}{_VARIABLE.sub(_COLON, part)}"


def _quoted_text(part: str) -> str:
    """Return a string, a quoted name or a comment without colons that would begin a pgbench variable."""
    if part.startswith(("--", "/*")):
        return " "
    if not _VARIABLE.search(part):
        return part
    if part[0] in "eE":
        return _VARIABLE.sub(r"\\x3A", part)
    if part.startswith("$"):
        tag = part[: part.index("$", 1) + 1]
        return _escape_string(part[len(tag) : -len(tag)])
    if part.startswith('"'):
        escaped = part.replace("\\", r"\\")
        return f" U&{_VARIABLE.sub(_COLON, escaped)}"
    return _escape_string(part[1:-1].replace("''", "'")) if part.startswith("'") else part


def _escape_string(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return " E'" + re.sub(_VARIABLE, r"\\x3A", escaped) + "'"
