r"""The statements of a script as pgbench sends them, with variables filled in by pgbench itself.

pgbench's language (expressions, \if, \gset) is not implemented here: pgbench runs the script once, with --debug, in a
transaction that is rolled back.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path

from pgversus.errors import WorkloadError
from pgversus.host.commands import Finished, run
from pgversus.host.directories import make_directory
from pgversus.host.permissions import PRIVATE_DIRECTORY, write_for
from pgversus.postgres.client import Client
from pgversus.postgres.session import Target
from pgversus.records.plans import Statement
from pgversus.study.statement_scripts import SCRIPT
from pgversus.study.workload import PgbenchWorkload, PlannedStatement, PreparedStatement, QueryMode, Script
from pgversus.text.sql import QUOTE, Quotes, without_comments, without_quoted
from pgversus.workload.pgbench import stderr_text, with_missing_tables

_SENT_LINE = re.compile(r"^[^\s:]+: (?:debug: )?client \d+ (sending|\w+)\b ?", re.MULTILINE)
_SENDING = "sending"
_HEAD_OF_BUILTIN = re.compile(r"\A-- .*\n")
_TOKEN = re.compile(
    rf"(?P<opening>{QUOTE})|(?P<meta>(?:^|(?<=;))[ \t]*\\(?:[^\n\\]++|\\\n?)*+)|(?P<end>;|\\[ag]set[^\n]*)",
    re.MULTILINE,
)
_PARAMETER = re.compile(r"\$\d+")
_TRANSACTION = re.compile(
    r"\s*(?:BEGIN|START\s+TRANSACTION|COMMIT|END|ABORT|ROLLBACK)\b(?!\s+(?:TO|PREPARED)\b)", re.IGNORECASE
)
_TWO_PHASE = re.compile(r"\s*(?:PREPARE\s+TRANSACTION|(?:COMMIT|ROLLBACK)\s+PREPARED)\b", re.IGNORECASE)
_TOGETHER = "\\;"
_LEFT_OUT = re.compile(r"\s*\\(?:startpipeline|endpipeline|syncpipeline|sleep)\b")


def shown_script(text: str) -> str:
    """Return the script from the output of pgbench's --show-script."""
    return _HEAD_OF_BUILTIN.sub("", text)


def sent_statements(stderr: str) -> list[str]:
    """Return the statements that pgbench reports as sent, without transaction commands."""
    lines = list(_SENT_LINE.finditer(stderr))
    starts = [*(match.start() for match in lines), len(stderr)]
    sent = [
        stderr[match.end() : end].strip() for match, end in zip(lines, starts[1:], strict=True) if match[1] == _SENDING
    ]
    return [text.rstrip(";").rstrip() for text in sent if not _TRANSACTION.match(text)]


def parameters_of(template: str, text: str) -> tuple[str, ...] | None:
    """Return the values of $1 and so on, by comparing a template with its filled-in text; None if they do not match.

    pgbench numbers parameters in order; differently numbered ones are part of the user's text.
    """
    first, *others = _PARAMETER.split(template)
    numbers = [found[1:] for found in _PARAMETER.findall(template)]
    if numbers != [str(number + 1) for number in range(len(others))]:
        return None
    if not others:
        return () if text == first else None
    # Each value is as short as the next piece allows; a regular expression would also try all longer ones.
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
    """Return the script as one transaction that is rolled back, without its own transaction commands.

    Pauses are removed. So are pipelines, because pgbench does not fill in variables there.
    """
    kept = [text for text in _parts(script) if not (_is_of_transaction(text) or _LEFT_OUT.match(text))]
    end = "\n;" if kept and _is_open(kept[-1]) else "\n"
    return "".join(["BEGIN;\n", *kept, end, "ROLLBACK;\n"])


def _parts(script: str) -> Iterator[str]:
    """Split a script into statements, each with its end, and pgbench's meta-commands; together they are the script."""
    quotes = Quotes(script)
    begin = position = 0
    is_open = False
    """Whether a statement has begun, in which a backslash is part of the statement."""
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
    """Return whether a text is a statement without a terminator."""
    bare = without_comments(text).strip()
    return bool(bare) and not bare.endswith(";") and not bare.startswith("\\")


_SEED = 1
# The same on all arms, so that all use the same values.
_LONGEST_S = 600.0


def statements_of(workload: PgbenchWorkload, client: Client, target: Target, scratch: Path) -> list[Statement]:
    """Return the statements of every script, in the order in which one transaction sends them.

    Statements that a script does not contain, but whose plans are captured with its own, come before it.
    Their changes are rolled back. If the load prepares statements, templates are included. WorkloadError if pgbench
    fails.
    """
    found = []
    for script in workload.scripts:
        found += [_planned_statement(one) for one in script.planned]
        if script.prepared is not None:
            found.append(_prepared_statement(script.name, script.prepared))
            continue
        _check_recordable(_text(script, client), script.name)
        file = _written(script, client, scratch)
        texts = sent_statements(_recorded(script, workload, client, target, file, QueryMode.SIMPLE))
        templates: list[str] = []
        if workload.query_mode is QueryMode.PREPARED:
            templates = sent_statements(_recorded(script, workload, client, target, file, QueryMode.EXTENDED))
        pairs = zip_longest(texts, templates[: len(texts)])
        found += [_statement(script, number, text, template) for number, (text, template) in enumerate(pairs, start=1)]
    return found


def _check_recordable(text: str, name: str) -> None:
    """Raise WorkloadError for a script with statements that cannot be rolled back, or are sent together."""
    for part in _parts(text):
        if _TWO_PHASE.match(without_comments(part, " ")):
            expected, to_do = "statements that can be rolled back", "omit PREPARE TRANSACTION, or add --no-plans"
        elif not part.lstrip().startswith("\\") and _TOGETHER in without_quoted(part):
            expected, to_do = "statements that are sent one by one", "end them with ; instead, or add --no-plans"
        else:
            continue
        raise WorkloadError(
            "the statements of a script cannot be recorded",
            slug="workload-statements-unknown",
            where=name,
            found=" ".join(part.split()),
            expected=expected,
            to_do=to_do,
        )


def _prepared_statement(name: str, prepared: PreparedStatement) -> Statement:
    return Statement(
        script=name, number=1, text=prepared.with_values, template=prepared.text, parameters=prepared.values
    )


def _planned_statement(one: PlannedStatement) -> Statement:
    return Statement(script=f"{one.name}{SCRIPT}", number=1, text=one.text, template=one.text)


def _statement(script: Script, number: int, text: str, template: str | None) -> Statement:
    parameters = None if template is None else parameters_of(template, text)
    if not parameters:
        # Without parameters a prepared statement is planned like its text.
        return Statement(script=script.name, number=number, text=text)
    return Statement(script=script.name, number=number, text=text, template=template, parameters=parameters)


_NEVER_IN_BLOCK = "transaction block"
# In the message of the server about VACUUM and its like.
_END = re.compile(r"(?:;|\\[ag]set[^\n]*)\Z")
_SETTING_LINE = re.compile(r'^[^:\n]+:  pgversus setting (\S+) = (".*")$', re.MULTILINE)
# The server's word for WARNING depends on its language. The value is JSON without line breaks.


def settings_during(
    script: Script, workload: PgbenchWorkload, client: Client, target: Target, scratch: Path, names: Sequence[str]
) -> dict[str, list[str]]:
    """Return the values of these settings after each statement of a script, in the session that runs it.

    Its changes are rolled back, unless it cannot run inside a transaction block. WorkloadError if pgbench fails.
    """
    asking = with_questions(_text(script, client), "".join(map(_question, names)))
    try:
        file = _written_for(client, scratch, in_one_transaction(asking))
        output = _recorded(script, workload, client, target, file, QueryMode.SIMPLE)
    except WorkloadError as error:
        # Changes of other failing scripts must not remain on an external server.
        if not target.is_ours and _NEVER_IN_BLOCK not in error.found:
            raise
        file = _written_for(client, scratch, asking)
        output = _recorded(script, workload, client, target, file, QueryMode.SIMPLE)
    return told_settings(output)


def told_settings(stderr: str) -> dict[str, list[str]]:
    """Return the values of settings from the warnings that the questions raise, by name, in order."""
    found: dict[str, list[str]] = {}
    for match in _SETTING_LINE.finditer(stderr):
        # A script may raise such a warning itself.
        with suppress(ValueError):
            found.setdefault(match[1], []).append(json.loads(match[2]))
    return found


def with_questions(script: str, questions: str) -> str:
    """Return the script with these statements after each of its own."""
    asking = []
    for part in _parts(script):
        if _END.search(part):
            asking += [part, "\n", questions]
        elif _is_open(part):
            asking += [part, "\n;\n", questions]
        else:
            asking.append(part)
    return "".join(asking)


def _question(name: str) -> str:
    quoted = name.replace("'", "''")
    return (
        f"DO $pgversus$ BEGIN RAISE WARNING 'pgversus setting % = %', '{quoted}', "
        f"to_json(coalesce(current_setting('{quoted}', true), '')); END $pgversus$;\n"
    )


def _written(script: Script, client: Client, scratch: Path) -> Path:
    """Write the script as one transaction to a file that only pgbench's user can read, and return its path."""
    return _written_for(client, scratch, in_one_transaction(_text(script, client)))


def _written_for(client: Client, scratch: Path, text: str) -> Path:
    make_directory(scratch, PRIVATE_DIRECTORY)
    client.user.grant_access(scratch)
    file = scratch / "sent.sql"
    write_for(client.user, file, text.encode())
    return file


def _recorded(
    script: Script, workload: PgbenchWorkload, client: Client, target: Target, file: Path, query_mode: QueryMode
) -> str:
    """Run a script once and return pgbench's standard error, which contains each statement that it sends.

    query_mode: simple prints statements with variables filled in, extended with $1 and so on instead. All other options
    are the options of the load.
    """
    arguments = [
        str(client.pgbench),
        "-n",
        "--debug",
        *("-t", "1", "-M", query_mode.value),
        f"--random-seed={_SEED}",
        *(["-s", str(workload.scale)] if workload.scale is not None else []),
        *(word for name, value in workload.variables for word in ("-D", f"{name}={value}")),
        *("-f", f"{file}@1"),
        target.conninfo,
    ]
    finished = run(
        arguments,
        environment=client.environment(target),
        timeout_s=_LONGEST_S,
        user=client.user,
        ends_with_us=True,
    )
    if not finished.succeeded:
        found = _why(finished)
        raise WorkloadError(
            "a script cannot be run in one transaction to capture its statements",
            slug="workload-statements-unknown",
            where=script.name,
            found=found,
            expected="statements that can be rolled back",
            to_do=with_missing_tables(found, "fix the script, its data or its variables; see pgbench's message above"),
        )
    return finished.stderr


def _why(finished: Finished) -> str:
    if finished.timed_out:
        # Its output is only the statements that it has sent.
        return f"pgbench did not finish within {_LONGEST_S:.0f} s and was terminated"
    return stderr_text(finished.stderr) or f"pgbench exited with code {finished.exit_code}"


def _text(script: Script, client: Client) -> str:
    if script.text is not None:
        return script.text
    # pgbench prints it on standard error.
    return shown_script(run([str(client.pgbench), f"--show-script={script.name}"], user=client.user).stderr)
