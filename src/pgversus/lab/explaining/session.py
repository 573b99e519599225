"""Plans alone: servers are fetched, loaded, started, asked and stopped, without any load."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from pgversus.errors import StudyError
from pgversus.host.directories import open_cache
from pgversus.host.identity import ServerUser
from pgversus.host.leftovers import sweep
from pgversus.lab.data.cache_room import most_kept_bytes
from pgversus.lab.data.room import make_room
from pgversus.lab.data.snapshot_shelf import SnapshotShelf
from pgversus.lab.explaining.capture import capture
from pgversus.lab.explaining.comparing import compared, refuse_other_statements
from pgversus.lab.explaining.statements import statements_of
from pgversus.lab.explaining.undoing import undoings
from pgversus.lab.failures import failures_of_the_host
from pgversus.lab.measuring.arms import ArmServer
from pgversus.lab.progress import Progress
from pgversus.lab.run_directory import run_directory
from pgversus.lab.settings_check import ask_of, with_possible_settings
from pgversus.lab.site import PostgresSite
from pgversus.postgres import catalog
from pgversus.postgres.builds.in_cache import using_builds
from pgversus.postgres.builds.provide import provide
from pgversus.postgres.client import Client
from pgversus.postgres.labels import label_of_running
from pgversus.postgres.session import connect
from pgversus.postgres.settings_check import ask_program
from pgversus.report.compared_plans import PlansAnswer
from pgversus.study.needs import needs_of
from pgversus.study.servers import RunningServer
from pgversus.study.study import Study
from pgversus.study.workload import PgbenchWorkload


def compare_plans(
    study: Study, user: ServerUser, client: Client, progress: Progress, *, full_statistics: bool
) -> PlansAnswer:
    """The plans of a comparison's workload on each arm, held against the baseline's; nothing is left behind.

    study: of one context. full_statistics: whether tables are analyzed first as thoroughly as a server can.
    PgversusError of any kind when its servers cannot be had, loaded or asked.
    """
    _refuse_analyzing_others(study, full_statistics=full_statistics)
    cache = open_cache()
    for name in sweep(cache.runs):
        progress.say(f"removed what the killed run {name} had left")
    make_room(needs_of(study), cache, progress.say)
    with failures_of_the_host(cache.root), ExitStack() as stack:
        provided = provide(study.servers, study.build_manner, cache, user, progress.say, progress)
        builds = dict(zip(study.servers, provided, strict=True))
        stack.enter_context(using_builds(builds.values(), cache))
        directory = stack.enter_context(run_directory(cache, user))
        ask = partial(ask_program, user=user, directory=directory.settings_directory())
        study = with_possible_settings(study, ask_of(builds, ask))
        shelf = SnapshotShelf(cache, directory, progress, most_kept_bytes())
        stack.callback(shelf.trim)
        site = PostgresSite(
            study, builds, directory, client=client, shelf=shelf, progress=progress, stack=stack, kept_logs=None
        )
        (context,) = study.contexts
        servers = site.servers_of(context).servers
        workload = context.comparison.workload
        assert isinstance(workload, PgbenchWorkload)  # noqa: S101 - an operation has no plans to compare
        captured = []
        # One after the other, so that each has the host for itself.
        for server in servers:
            progress.say(f"asking {server.arm.label} for its plans")
            with _started(server, full_statistics=full_statistics):
                statements = statements_of(workload, client, server.target, directory.root / "told")
                captured.append(capture(server.arm.label, server.target, statements, with_rows=True))
        labels = [arm.label for arm in context.comparison.arms]
        refuse_other_statements(labels, captured)
        undone_by = []
        for server, contender in zip(servers[1:], captured[1:], strict=True):
            with _started(server, full_statistics=False):
                undone_by.append(undoings(server.target, captured[0], contender, context.comparison.factors))
    return compared(labels, captured, undone_by)


@contextmanager
def _started(server: ArmServer, *, full_statistics: bool) -> Iterator[None]:
    server.start()
    try:
        if full_statistics:
            with connect(server.target) as connection:
                catalog.analyze_fully(connection)
        yield
    finally:
        server.stop()


def _refuse_analyzing_others(study: Study, *, full_statistics: bool) -> None:
    others = [label_of_running(one) for one in study.servers if isinstance(one, RunningServer)]
    if full_statistics and others:
        raise StudyError(
            "the statistics of a running server are not ours to change",
            slug="study-statistics-of-running-server",
            where="--full-statistics",
            found=", ".join(others),
            expected="servers that pgversus starts itself, on copies of its own",
            to_do="leave it out; or raise default_statistics_target there and analyze both",
        )
