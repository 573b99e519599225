"""One study, from names to blocks on disk: a comparison of two servers, or a matrix of thousands.

What was measured is read back from the results folder (lab/answers.py), so that a report made years later says what was
said at the end of the run.
"""

import shutil
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pgversus.host.directories import Cache, open_cache
from pgversus.host.facts import host_facts
from pgversus.host.identity import ServerUser
from pgversus.host.leftovers import sweep
from pgversus.lab.course import Course
from pgversus.lab.dry_run import check_room
from pgversus.lab.engine import run_courses
from pgversus.lab.postgres_apparatus import clock
from pgversus.lab.progress import Progress
from pgversus.lab.resuming import check_same_builds, check_same_study, study_fact, without_secrets
from pgversus.lab.run_directory import RunDirectory, run_directory
from pgversus.lab.settings_check import with_possible_settings
from pgversus.lab.site import PostgresSite
from pgversus.postgres.builds.model import Build
from pgversus.postgres.builds.provide import provide
from pgversus.postgres.client import Client
from pgversus.postgres.settings_check import SettingAnswer, ask_setting
from pgversus.stats.trials import Block
from pgversus.store.codec import STUDY
from pgversus.store.files import check_folder, holds_results
from pgversus.store.reading import StoredStudy, read_results
from pgversus.store.results import Results
from pgversus.study.design import StopReason
from pgversus.study.needs import needs_of
from pgversus.study.servers import ServerName
from pgversus.study.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a study is carried out with."""

    user: ServerUser
    client: Client
    results: Path
    """A folder that holds no results yet, or those of an earlier run of the same study."""
    keep_logs: bool = False
    """Whether pgbench's transaction logs are kept among the results."""
    resumes: bool = False
    """Whether results that are there already are gone on with, instead of being an error."""


def run_study(study: Study, means: Means, progress: Progress) -> StopReason:
    """Fetch, load, measure, keep; why it ended. Everything started is stopped and removed when this returns or raises.

    PgversusError of any kind when it cannot be begun; once blocks run, failures and Ctrl-C become part of the results.
    """
    check_folder(means.results, may_hold_results=means.resumes)
    earlier = read_results(means.results) if holds_results(means.results) else None
    cache = open_cache()
    for name in sweep(cache.runs):
        progress.say(f"removed what the killed run {name} had left")
    check_room(needs_of(study), cache)
    builds = _provide(study, cache, means, progress)
    if earlier is not None:
        check_same_builds(earlier, builds, means.results)
    with ExitStack() as stack:
        directory = stack.enter_context(run_directory(cache, means.user))
        study = with_possible_settings(study, builds, partial(_ask, means.user, directory))
        for one in study.skipped:
            progress.say(f"left out: {one.label} ({one.reason})")
        if earlier is not None:
            check_same_study(earlier, study, means.results)
        stack.callback(_keep_server_logs, directory, means.results)
        site = PostgresSite(
            study,
            builds,
            directory,
            client=means.client,
            progress=progress,
            stack=stack,
            kept_logs=means.results / "transaction-logs" if means.keep_logs else None,
        )
        keeper = _Keeper(
            study,
            means,
            stack,
            begun=earlier is not None,
            facts=_facts(directory, means, builds),
        )
        courses = _courses(study, earlier)
        stopped = run_courses(
            courses,
            site,
            seed=study.seed,
            budget_s=study.budget_s,
            clock=clock,
            progress=progress,
            keep=keeper.keep,
            keep_preparation=keeper.keep_preparation,
        )
        keeper.end(stopped)
        return stopped


class _Keeper:
    """Writes what happens to the results folder, which is made when there is something to keep."""

    def __init__(
        self,
        study: Study,
        means: Means,
        stack: ExitStack,
        *,
        begun: bool,
        facts: Mapping[str, object],
    ) -> None:
        self._study = study
        self._means = means
        self._stack = stack
        self._begun = begun
        self._facts = facts
        self._results: Results | None = None

    def keep_preparation(self, course: Course) -> None:
        """What was found while a context was prepared."""
        self._open().add_preparation(course.context.number, course.preparation, course.failure)

    def keep(self, course: Course, block: Block) -> None:
        """A block, before anything else is done with it."""
        self._open().add_block(course.context.number, block)

    def end(self, stopped: StopReason) -> None:
        """Why it ended."""
        self._open().add_fact("ended", stopped.value)

    def _open(self) -> Results:
        if self._results is None:
            self._results = Results(self._means.results)
            self._stack.callback(self._results.close)
            if not self._begun:
                # Before the first block: what is asked, on what, in which order (the seed); nothing rests on memory.
                hidden = without_secrets(self._study)
                self._results.add_study(STUDY.dump_python(study_fact(hidden), mode="json"), hidden.contexts)
            for name, value in self._facts.items():
                self._results.add_fact(name, value)
        return self._results


def _courses(study: Study, earlier: StoredStudy | None) -> list[Course]:
    """Every context as far as it has come."""
    courses = [Course(context, study.verdicts) for context in study.contexts]
    if earlier is not None:
        for course, stored in zip(courses, earlier.contexts, strict=True):
            course.go_on_from(stored.preparation, stored.failure, stored.blocks)
    return courses


def _provide(study: Study, cache: Cache, means: Means, progress: Progress) -> dict[ServerName, Build | None]:
    """A build for every server of the study, all at once, so that they come from one family."""
    names = list(dict.fromkeys(arm.server for context in study.contexts for arm in context.comparison.arms))
    builds = provide(names, cache, means.user, progress.say, progress.fetching)
    return dict(zip(names, builds, strict=True))


def _facts(directory: RunDirectory, means: Means, builds: Mapping[ServerName, Build | None]) -> dict[str, object]:
    return {
        # Until it has ended otherwise; nobody will be there to say so after kill -9.
        "ended": StopReason.INTERRUPTED.value,
        "host": host_facts(directory.root),
        "client": {"version": means.client.version, "origin": means.client.origin},
        "builds": {str(name): f"{b.origin} {b.version} {b.sha256 or ''}".strip() for name, b in builds.items() if b},
    }


def _ask(user: ServerUser, directory: RunDirectory, build: Build, name: str, value: str) -> SettingAnswer:
    return ask_setting(build, name, value, user, directory.settings_directory())


def _keep_server_logs(directory: RunDirectory, results: Path) -> None:
    """What the servers said, beside the results: the run's own directory goes with the run."""
    # A server of somebody else has no log here, and a full disk is no reason to lose the answer.
    with suppress(OSError):
        for log in directory.server_logs():
            if results.is_dir():
                with log.open("rb") as words, (results / log.name).open("ab") as kept:
                    shutil.copyfileobj(words, kept)
