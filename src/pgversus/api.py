"""pgversus from Python: the same studies, the same results folders, answers as objects and as Arrow tables."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from pgversus.engine.progress import NoProgress, Progress
from pgversus.errors import PgversusError
from pgversus.host.identity import server_user
from pgversus.lab.answer import read_answer
from pgversus.lab.consent import opened_with_consent
from pgversus.lab.resume import EarlierResults
from pgversus.lab.run import RunOptions, run_study
from pgversus.lab.studies import open_study
from pgversus.postgres.client import client_at, fixed_client
from pgversus.report.answer import StudyAnswer
from pgversus.report.tidy_tables import arrow_table, trial_table, verdict_table
from pgversus.report.verdicts import VerdictOn, verdict_on
from pgversus.study.build_options import manner_asked
from pgversus.text.redaction import hide_in_error
from pgversus.text.translation import Language, use_language
from pgversus.text.units import parse_duration

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class StudyResults:
    """What a study has found."""

    answer: StudyAnswer
    """Everything that reports are made from."""

    @cached_property
    def verdicts(self) -> tuple[VerdictOn, ...]:
        """One for each contender of each context that was measured."""
        return tuple(verdict_on(one, result) for one in self.answer.answers for result in one.analysis.results)

    def trials(self) -> "pa.Table":
        """One row for each trial, with its counters; HostError without pyarrow. `.to_pandas()` makes a data frame."""
        return arrow_table(trial_table(self.answer))

    def html(self, language: str = "en") -> str:
        """The report as one page of HTML, in `en` or `ja`; ValueError for another language.

        The results folder has to be there still, else StoreError: plans and latencies are read when they are asked
        for, and caveats are told when results are read, so that all is read again for another language than English.
        """
        from pgversus.report.page.page import page_html  # noqa: PLC0415 - charts are for who wants them

        told = Language(language)
        with use_language(told):
            return page_html(self.answer if told is Language.ENGLISH else read_answer(Path(self.answer.results)))

    def verdict_table(self) -> "pa.Table":
        """One row for each verdict; HostError without pyarrow."""
        return arrow_table(verdict_table(self.answer))


@contextmanager
def _errors_without_secrets() -> Iterator[None]:
    """Errors that may be shown: without passwords, and without the errors of drivers that they come from."""
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
    """Run a study to its end, or go on with it, and return what it has found; as `pgversus run`.

    study: a study file, a folder with a study.toml, or the name of a bundled study. budget: `90s`, `15m`, `2h`.
    keep_logs: pgbench's transaction logs are kept among the results. plans: they are captured, and what changed ones
    account for is measured; sample_plans: they are held against those under load; check_rows: what statements return is
    compared. new: begin afresh; earlier results are put aside, not removed. trust: a study file may run programs,
    connect to servers, build source of its choice and read files outside of its folder; otherwise one that asks for any
    of this is refused. build_profile, build_system: of servers from source, in place of the study's: `full`, `meson`.
    PgversusError of any kind when it cannot be begun; Ctrl-C ends it with what has been found.
    """
    open_it = partial(
        open_study,
        str(study),
        profile=profile,
        budget_s=None if budget is None else parse_duration(budget, "budget"),
        seed=seed,
        results=None if results is None else Path(results),
        afresh=new,
    )
    opened = opened_with_consent(open_it, trust=trust, ask=None)
    manner = manner_asked(opened.study.build_manner, build_profile, build_system)
    asked = replace(opened.study, build_manner=manner)
    user = server_user(run_as)
    means = RunOptions(
        user=user,
        client=fixed_client(user) if pgbench is None else client_at(Path(pgbench), user),
        results=opened.results,
        earlier=EarlierResults.MOVE_AWAY if new else EarlierResults.RESUME,
        keep_logs=keep_logs,
        plans=plans,
        sample_plans=sample_plans,
        check_rows=check_rows,
    )
    run_study(asked, means, progress or NoProgress())
    return load_results(opened.results)


@_errors_without_secrets()
def load_results(folder: str | Path) -> StudyResults:
    """What a results folder holds; StoreError when it cannot be read."""
    return StudyResults(read_answer(Path(folder)))
