"""Plans compared without measuring: of a workload, or of the statements of an application.

The latter are executed with their own values, or with values from statistics; without any, generic plans are compared.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain

import psycopg

from pgversus.answers.plans import NotCompared, PlansAnswer, compared
from pgversus.engine.progress import Progress
from pgversus.errors import WorkloadError
from pgversus.host.identity import ServerUser
from pgversus.lab.acting_settings import session_settings
from pgversus.lab.arm_servers import ArmServer
from pgversus.lab.failures import failures_of_the_host
from pgversus.lab.plan_capture import Explainer, not_explained, statistics_of
from pgversus.lab.resources import StudyResources, open_resources
from pgversus.lab.study_host import check_external_servers
from pgversus.lab.testbed import PostgresTestbed
from pgversus.postgres import catalog
from pgversus.postgres.client import Client
from pgversus.postgres.explain import explain_generic, index_keys, planner_settings
from pgversus.postgres.parameters import suggestion
from pgversus.postgres.session import connect
from pgversus.records.plans import Captured, CapturedPlans, CapturedStatement, Statement
from pgversus.statements.statement import NO_VALUES
from pgversus.study.application import contexts_of_samples
from pgversus.study.comparison import BASELINE
from pgversus.study.statement_scripts import SCRIPT
from pgversus.study.study import ApplicationStatement, Context, Study


def compare_plans(study: Study, user: ServerUser, client: Client, progress: Progress) -> PlansAnswer:
    """Compare the plans of a comparison's workload on each arm with the baseline's; leave nothing behind.

    study: with one context. PgversusError of any kind if its servers cannot be provided, loaded or queried.
    """
    check_external_servers(study, client)
    with _started(study, user, client, progress) as started:
        progress.say("capturing the plans of every arm")
        (context,) = started.study.contexts
        plans = started.explainer.explain(started.servers, context.comparison)
        return compared(context.comparison.arms, plans, started.block_bytes)


def compare_statement_plans(study: Study, user: ServerUser, client: Client, progress: Progress) -> PlansAnswer:
    """Compare the plans of each statement on each arm with the baseline's; leave nothing behind.

    study: an upgrade check, of which nothing is measured. A statement that cannot be compared does not prevent the
    comparison of the others. PgversusError of any kind if its servers cannot be provided, loaded or queried.
    """
    with _started(study, user, client, progress) as started:
        for one in started.study.skipped:
            progress.say(f"skipped: {one.label} ({one.reason})")
        for server in started.servers:
            with connect(server.target) as connection:
                if catalog.tables_are_empty(connection):
                    catalog.forget_empty_tables(connection)
        progress.say("capturing the plans of every statement")
        return _StatementPlans(started).answer()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Started:
    """A study whose servers are running."""

    study: Study
    servers: Sequence[ArmServer]
    explainer: Explainer

    @property
    def block_bytes(self) -> list[int]:
        """The block size of each arm."""
        return [int(session_settings(server)["block_size"].value) for server in self.servers]


@contextmanager
def _started(study: Study, user: ServerUser, client: Client, progress: Progress) -> Iterator[_Started]:
    """Start the servers of a study's first context, and remove them at the end."""
    with open_resources(study, user, progress) as resources, ExitStack() as stack:
        snapshots = resources.snapshots(client, progress)
        shared = StudyResources(resources=resources, client=client, snapshots=snapshots, progress=progress)
        testbed = PostgresTestbed(resources.study, shared, stack)
        with failures_of_the_host(resources.cache.root):
            servers = testbed.servers_of(resources.study.contexts[0]).servers
            for server in servers:
                server.start()
            scratch = resources.directory.root / "statements"
            explainer = Explainer(client=client, scratch=scratch, with_rows=True, progress=progress)
            yield _Started(study=resources.study, servers=servers, explainer=explainer)


class _StatementPlans:
    """The plans of the statements of a study on its running servers."""

    def __init__(self, started: _Started) -> None:
        self._contexts = {one.number: one for one in started.study.contexts}
        self._statements = started.study.statements
        self._servers = started.servers
        self._explainer = started.explainer
        self._block_bytes = started.block_bytes

    def answer(self) -> PlansAnswer:
        """Return all compared plans, in the order of the statements."""
        answers = list(chain.from_iterable(map(self._of, self._statements)))
        return PlansAnswer(
            compared=tuple(chain.from_iterable(one.compared for one in answers)),
            unlike=tuple(dict.fromkeys(chain.from_iterable(one.unlike for one in answers))),
            not_compared=tuple(chain.from_iterable(one.not_compared for one in answers)),
        )

    def _of(self, one: ApplicationStatement) -> Iterator[PlansAnswer]:
        """Yield the compared plans of a statement, for each set of its values."""
        if one.is_planning:
            return
        if one.context is None and one.obstacle != NO_VALUES:
            yield _not_compared(one.name, one.obstacle)
            return
        contexts = [] if one.context is None else self._with_values(one, self._contexts[one.context])
        yield from map(self._explained, contexts) if contexts else [self._generic(one)]

    def _with_values(self, one: ApplicationStatement, context: Context) -> Sequence[Context]:
        """Return a context for each set of values; empty if there are no values."""
        if not one.needs_values:
            return [context]
        with connect(self._servers[BASELINE].load_target) as connection:
            found = suggestion(connection, one.text)
        return contexts_of_samples(one, context, found.samples)

    def _explained(self, context: Context) -> PlansAnswer:
        try:
            plans = self._explainer.explain(self._servers, context.comparison)
        except WorkloadError as error:
            ((_, name),) = context.levels
            return _not_compared(name, f"{error.what}: {error.found}")
        return compared(context.comparison.arms, plans, self._block_bytes)

    def _generic(self, one: ApplicationStatement) -> PlansAnswer:
        try:
            captured = [_generic_plan(server, one) for server in self._servers]
        except WorkloadError as error:
            return _not_compared(one.name, f"{error.what}: {error.found}")
        nothing_undone = tuple((None,) for _ in captured[1:])
        plans = CapturedPlans(arms=tuple(captured), undone_by=nothing_undone, is_searched=False)
        return compared([server.arm for server in self._servers], plans, self._block_bytes)


def _generic_plan(server: ArmServer, one: ApplicationStatement) -> Captured:
    """Return the generic plan of a statement; WorkloadError with the server's message if it is rejected."""
    statement = Statement(script=f"{one.name}{SCRIPT}", number=1, text=one.text, template=one.text)
    with connect(server.load_target, as_the_load=True) as connection:
        try:
            explained = explain_generic(connection, one.text)
        except psycopg.Error as error:
            raise not_explained(server.arm.label, statement, error) from error
        settings, keys = planner_settings(connection), index_keys(connection)
    captured = CapturedStatement(statement=statement, explained=explained, rows=None)
    return Captured(statements=(captured,), statistics=statistics_of(server), settings=settings, index_keys=keys)


def _not_compared(name: str, reason: str) -> PlansAnswer:
    return PlansAnswer(compared=(), not_compared=(NotCompared(statement=name, reason=" ".join(reason.split())),))
