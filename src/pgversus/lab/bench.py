"""The measuring of a study whose servers are there: courses from start to end on one site."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pgversus.data.cache_quota import free_up
from pgversus.data.snapshots import Snapshots
from pgversus.engine.context_state import Course
from pgversus.engine.progress import Progress
from pgversus.engine.scheduler import run_parts
from pgversus.host.directories import Cache
from pgversus.lab.keeping import Keeper
from pgversus.lab.measuring.load_harness import ExplainArms
from pgversus.lab.measuring.postgres_apparatus import clock
from pgversus.lab.resuming import course_so_far
from pgversus.lab.site import PostgresSite
from pgversus.lab.workshop import Workshop
from pgversus.postgres.client import Client
from pgversus.store.reading import StoredStudy
from pgversus.study.design import StopReason
from pgversus.study.disk import disk_bytes
from pgversus.study.parts import parts_of
from pgversus.study.servers import ServerName
from pgversus.study.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What studies that are measured one after the other in one run have in common."""

    workshop: Workshop
    client: Client
    snapshots: Snapshots
    worn_before: frozenset[ServerName]
    """Running servers whose data loads have changed since they were loaded, or may have."""
    kept_logs: Path | None
    """Where transaction logs are kept; None to throw them away."""
    progress: Progress


def measure(
    study: Study, bench: Bench, earlier: StoredStudy | None, keeper: Keeper, explain: ExplainArms | None
) -> StopReason:
    """Measure a study to its end and keep what is found; why it ended. Its servers are stopped when this is left.

    earlier: its results so far, which are gone on with. explain: asks each context's servers for plans.
    """
    with ExitStack() as stack:
        site = PostgresSite(
            study,
            bench.workshop.builds,
            bench.workshop.directory,
            client=bench.client,
            snapshots=bench.snapshots,
            common=bench.workshop.common_settings,
            progress=bench.progress,
            stack=stack,
            kept_logs=bench.kept_logs,
            worn_before=bench.worn_before,
            explain=explain,
        )
        courses = _courses(study, earlier)
        stopped = run_parts(
            _parts(study, courses),
            site,
            begin_part=partial(_begin_part, site=site, cache=bench.workshop.cache, progress=bench.progress),
            seed=study.seed,
            budget_s=study.budget_s,
            clock=clock,
            progress=bench.progress,
            keep=keeper.keep,
            keep_preparation=keeper.keep_preparation,
        )
        keeper.end(stopped, courses)
        return stopped


def _courses(study: Study, earlier: StoredStudy | None) -> list[Course]:
    """Every context as far as it has come."""
    if earlier is None:
        return [Course(context, study.verdicts) for context in study.contexts]
    return [
        course_so_far(context, stored, study.verdicts, study.budget_s)
        for context, stored in zip(study.contexts, earlier.contexts, strict=True)
    ]


def _parts(study: Study, courses: Sequence[Course]) -> list[list[Course]]:
    by_number = {course.context.number: course for course in courses}
    return [[by_number[context.number] for context in part] for part in parts_of(study.contexts)]


def _begin_part(part: Sequence[Course], site: PostgresSite, cache: Cache, progress: Progress) -> None:
    """Data of earlier parts go, and as much of what is kept for later runs as this one needs the room of."""
    contexts = [course.context for course in part]
    there = site.keep_only(contexts)
    free_up(disk_bytes(contexts) - there, cache, progress.say)
