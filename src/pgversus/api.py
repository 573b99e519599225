"""The Python API: run studies and load results folders; results are objects and Arrow tables."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from pgversus.answers.answer import StudyAnswer
from pgversus.answers.read import read_answer
from pgversus.engine.progress import Progress
from pgversus.errors import PgversusError
from pgversus.host.identity import server_user
from pgversus.lab.consent import opened_with_consent
from pgversus.lab.resume import EarlierResults
from pgversus.lab.run import RunOptions, run_study
from pgversus.lab.studies import open_study
from pgversus.lab.study_host import HostOptions, open_study_host
from pgversus.postgres.client import client_at, fixed_client
from pgversus.report.tidy_tables import arrow_table, trial_table, verdict_table
from pgversus.report.verdicts import VerdictOn, verdict_on
from pgversus.study.build_options import requested_manner
from pgversus.text.redaction import hide_in_error
from pgversus.text.translation import Language, use_language
from pgversus.text.units import parse_duration

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class StudyResults:
    """The results of a study."""

    answer: StudyAnswer
    """All data that reports are built from."""

    @cached_property
    def verdicts(self) -> tuple[VerdictOn, ...]:
        """The verdict for each contender in each measured context."""
        return tuple(verdict_on(one, result) for one in self.answer.answers for result in one.analysis.results)

    def trials(self) -> "pa.Table":
        """Return one row per trial, with its counters; `.to_pandas()` makes a data frame. HostError without pyarrow."""
        return arrow_table(trial_table(self.answer))

    def html(self, language: str = "en") -> str:
        """Return the report as one HTML page in `en` or `ja`; ValueError for any other language.

        StoreError if the results folder no longer exists: plans and latencies are loaded on demand.
        """
        from pgversus.report.page.page import page_html  # noqa: PLC0415 - charts are imported only on demand

        with use_language(Language(language)):
            return page_html(self.answer)

    def verdict_table(self) -> "pa.Table":
        """Return one row per verdict; HostError if pyarrow is not installed."""
        return arrow_table(verdict_table(self.answer))


@contextmanager
def _errors_without_secrets() -> Iterator[None]:
    """Remove passwords from errors, and the chained exceptions of drivers, which may contain them."""
    try:
        yield
    except PgversusError as error:
        hide_in_error(error)
        raise error from None


@_errors_without_secrets()
def run(
    study: str | Path,
    *,
    profile: str | None = None,
    budget: str | None = None,
    seed: int | None = None,
    results: str | Path | None = None,
    run_as: str | None = None,
    pgbench: str | Path | None = None,
    keep_logs: bool = False,
    plans: bool = True,
    sample_plans: bool = False,
    check_rows: bool = False,
    new: bool = False,
    trust: bool = False,
    build_profile: str | None = None,
    build_system: str | None = None,
    progress: Progress | None = None,
) -> StudyResults:
    """Run or resume a study and return its results, like `pgversus run`.

    study: a study file, a folder that contains study.toml, or the name of a bundled study.
    budget: a duration such as `90s`, `15m` or `2h`.
    keep_logs: store pgbench's per-transaction log files with the results.
    plans: capture plans and measure the effect of changed ones.
    sample_plans: compare the captured plans with the plans under load.
    check_rows: compare the rows that statements return.
    new: start over; earlier results are moved away, not removed.
    trust: allow the study file to run programs, connect to servers, build source of its choice and read files outside
    of its folder; without it, a study file that requires any of these is rejected.
    build_profile, build_system: override the study's values for servers built from source, e.g. `full`, `meson`.

    PgversusError of any kind if the study cannot be started; Ctrl-C ends the run and returns the results so far.
    """
    open_it = partial(
        open_study,
        str(study),
        profile=profile,
        budget_s=None if budget is None else parse_duration(budget, "budget"),
        seed=seed,
        results=None if results is None else Path(results),
        restarts=new,
    )
    opened = opened_with_consent(open_it, trust=trust, ask=None)
    manner = requested_manner(opened.study.build_manner, build_profile, build_system)
    configured = replace(opened.study, build_manner=manner)
    user = server_user(run_as)
    host_options = HostOptions(
        user=user,
        client=fixed_client(user) if pgbench is None else client_at(Path(pgbench), user),
        sample_plans=sample_plans,
        check_rows=check_rows,
    )
    options = RunOptions(
        results=opened.results,
        earlier=EarlierResults.MOVE_AWAY if new else EarlierResults.RESUME,
        keep_logs=keep_logs,
        plans=plans,
    )
    run_study(configured, options, partial(open_study_host, options=host_options), progress or Progress())
    return load_results(opened.results)


@_errors_without_secrets()
def load_results(folder: str | Path) -> StudyResults:
    """Return the results stored in a folder; StoreError if it cannot be read."""
    return StudyResults(read_answer(Path(folder)))
