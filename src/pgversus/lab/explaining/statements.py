"""What a workload sends, statement by statement, with its variables filled: asked of pgbench on one server."""

from dataclasses import dataclass
from pathlib import Path

from pgversus.errors import WorkloadError
from pgversus.host.commands import run
from pgversus.postgres.client import Client
from pgversus.postgres.session import Target
from pgversus.study.workload import PgbenchWorkload, Script
from pgversus.workload.pgbench import error_words
from pgversus.workload.pgbench_statements import (
    in_one_transaction,
    sent_statements,
    shown_script,
    shown_script_command,
    telling_command,
)

_SEED = 1
# The same on all arms, so that all are asked with the same values.
_LONGEST_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One of a script."""

    script: str
    number: int
    """In its script, from 1."""
    text: str

    @property
    def words(self) -> str:
        """Which one it is, and what it says, on one line."""
        return f"{self.script}, statement {self.number}: {' '.join(self.text.split())}"


def statements_of(workload: PgbenchWorkload, client: Client, target: Target, scratch: Path) -> list[Statement]:
    """Those of every script, in the order in which one transaction sends them; WorkloadError when pgbench fails.

    What they write is rolled back.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    found = []
    for script in workload.scripts:
        texts = _sent(script, workload, client, target, scratch / "told.sql")
        found += [Statement(script=script.name, number=number, text=text) for number, text in enumerate(texts, start=1)]
    return found


def _sent(script: Script, workload: PgbenchWorkload, client: Client, target: Target, file: Path) -> list[str]:
    file.write_text(in_one_transaction(_text(script, client)), encoding="utf-8")
    arguments = telling_command(
        pgbench=client.pgbench,
        conninfo=target.conninfo,
        script=file,
        scale=workload.scale,
        variables=workload.variables,
        seed=_SEED,
    )
    finished = run(arguments, environment=target.environment(), timeout_s=_LONGEST_S, ends_with_us=True)
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
    return shown_script(run(shown_script_command(client.pgbench, script.name)).stderr)
