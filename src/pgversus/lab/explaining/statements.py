"""What a workload sends, statement by statement, with its variables filled: asked of pgbench on one server."""

from itertools import zip_longest
from pathlib import Path

from pgversus.errors import WorkloadError
from pgversus.host.commands import run
from pgversus.host.directories import make_directory
from pgversus.host.permissions import PRIVATE_DIRECTORY, write_for
from pgversus.postgres.client import Client
from pgversus.postgres.session import Target
from pgversus.records.plans import Statement
from pgversus.study.workload import PgbenchWorkload, QueryMode, Script
from pgversus.workload.pgbench import error_words
from pgversus.workload.sent_statements import (
    in_one_transaction,
    parameters_of,
    sent_statements,
    shown_script,
    shown_script_command,
    telling_command,
)

_SEED = 1
# The same on all arms, so that all are asked with the same values.
_LONGEST_S = 600.0


def statements_of(workload: PgbenchWorkload, client: Client, target: Target, scratch: Path) -> list[Statement]:
    """Those of every script, in the order in which one transaction sends them; WorkloadError when pgbench fails.

    What they write is rolled back. Of a load that prepares them also as they are prepared.
    """
    make_directory(scratch, PRIVATE_DIRECTORY)
    client.user.let_through(scratch)
    found = []
    for script in workload.scripts:
        file = scratch / "told.sql"
        write_for(client.user, file, in_one_transaction(_text(script, client)).encode())
        texts = _sent(script, workload, client, target, file, QueryMode.SIMPLE)
        templates: list[str] = []
        if workload.query_mode is QueryMode.PREPARED:
            templates = _sent(script, workload, client, target, file, QueryMode.EXTENDED)
        pairs = zip_longest(texts, templates[: len(texts)])
        found += [_statement(script, number, text, template) for number, (text, template) in enumerate(pairs, start=1)]
    return found


def _statement(script: Script, number: int, text: str, template: str | None) -> Statement:
    parameters = None if template is None else parameters_of(template, text)
    if not parameters:
        # Without parameters what is prepared is planned as what is sent.
        return Statement(script=script.name, number=number, text=text)
    return Statement(script=script.name, number=number, text=text, template=template, parameters=parameters)


def _sent(
    script: Script, workload: PgbenchWorkload, client: Client, target: Target, file: Path, query_mode: QueryMode
) -> list[str]:
    arguments = telling_command(
        pgbench=client.pgbench,
        conninfo=target.conninfo,
        script=file,
        query_mode=query_mode,
        scale=workload.scale,
        variables=workload.variables,
        seed=_SEED,
    )
    finished = run(
        arguments,
        environment=client.environment(target),
        timeout_s=_LONGEST_S,
        user=client.user,
        ends_with_us=True,
    )
    if not finished.succeeded:
        raise WorkloadError(
            "a script cannot be run in one transaction, to see what it sends",
            slug="workload-not-told",
            where=script.name,
            found=error_words(finished.stderr) or f"pgbench returned {finished.exit_code}",
            expected="statements that can be rolled back",
            to_do="these are pgbench's own words; mend the script, its data or its variables",
        )
    return sent_statements(finished.stderr)


def _text(script: Script, client: Client) -> str:
    if script.text is not None:
        return script.text
    return shown_script(run(shown_script_command(client.pgbench, script.name), user=client.user).stderr)
