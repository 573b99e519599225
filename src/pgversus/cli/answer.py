"""Runs for compare, run and demo: measure, show the answer, and return the exit code."""

import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgversus.cli.fleet import open_on_fleet
from pgversus.cli.options import checks_rows, with_requested_manner
from pgversus.cli.output import Rendered, read_text, rendered, write_answer
from pgversus.errors import ExitCode
from pgversus.text.translation import Language, use_language

if TYPE_CHECKING:
    from rich.console import Console

    from pgversus.answers.answer import StudyAnswer
    from pgversus.answers.known_findings import KnownFindings
    from pgversus.lab.resume import EarlierResults
    from pgversus.lab.run import OpenStudy
    from pgversus.study.host_access import HostAccess
    from pgversus.study.study import Study


def measure(study: "Study", options: Mapping[str, Any], results: Path, *, earlier: "EarlierResults") -> int:
    """Run a study, show its answer, and return the exit code. earlier: how to treat existing results in the folder."""
    # Imported here: `pgversus --help` and usage errors do not need numpy and psycopg.
    from pgversus.answers.read import read_answer  # noqa: PLC0415
    from pgversus.cli.command import command_typed  # noqa: PLC0415
    from pgversus.cli.live_page import LivePage  # noqa: PLC0415
    from pgversus.cli.progress import TerminalProgress  # noqa: PLC0415
    from pgversus.lab.run import RunOptions, run_study  # noqa: PLC0415
    from pgversus.report.console import SafeConsole  # noqa: PLC0415
    from pgversus.study.design import StopReason  # noqa: PLC0415

    open_it = open_on_fleet(options) if options.get("fleet") else _open_here(options)
    run_options = RunOptions(
        results=results,
        keep_logs=options["keep_logs"],
        earlier=earlier,
        plans=not options["no_plans"],
        command=command_typed(sys.argv[1:]),
    )
    file = options.get("live_page")
    page = None if file is None else LivePage(path=Path(file), title=study.title or study.name)
    with TerminalProgress(SafeConsole(stderr=True), language=options["language"], page=page) as progress:
        stopped = run_study(with_requested_manner(study, options), run_options, open_it, progress)
    answer = read_answer(results)
    _show(answer, options)
    if stopped is StopReason.INTERRUPTED:
        # Perhaps before the first result of a confirmation, which the stored results do not show.
        return int(ExitCode.INTERRUPTED)
    return int(exit_code(answer, options["fail_on"], known=options.get("known")))


def _open_here(options: Mapping[str, Any]) -> "OpenStudy":
    """Return the function that opens a study on this host."""
    from pgversus.host.identity import server_user  # noqa: PLC0415 - not for `--help`
    from pgversus.lab.study_host import HostOptions, open_study_host  # noqa: PLC0415 - the same
    from pgversus.postgres.client import client_at, fixed_client  # noqa: PLC0415 - the same

    user = server_user(options["run_as"])
    chosen = HostOptions(
        user=user,
        client=client_at(Path(options["pgbench_path"]), user) if options["pgbench_path"] else fixed_client(user),
        check_rows=checks_rows(options),
        sample_plans=options["sample_plans"],
    )
    return partial(open_study_host, options=chosen)


def show_dry_run(
    study: "Study",
    results: Path,
    options: Mapping[str, Any],
    *,
    access: "HostAccess | None" = None,
    is_trusted: bool = True,
    earlier: "EarlierResults",
) -> int:
    """Print what a run of the study would do, and return its exit code if it would measure nothing, otherwise 0.

    HostError if there is not enough disk space.

    access: host access that needs consent. is_trusted: whether the study's servers may receive passwords from the
    environment. earlier: how the run would treat existing results.
    """
    from pgversus.host.identity import server_user  # noqa: PLC0415 - `pgversus --help` does not need psutil
    from pgversus.lab.estimates import check_disk_space, dry_run  # noqa: PLC0415 - the same
    from pgversus.report.dry_run import dry_run_text  # noqa: PLC0415 - the same

    found = dry_run(
        with_requested_manner(study, options),
        results,
        server_user(options["run_as"]),
        earlier_results=earlier,
        asks_servers=options["ask_servers"],
        is_trusted=is_trusted,
    )
    text = dry_run_text(found, access=access, with_plans=not options["no_plans"])
    write_answer(text, options["output"], found.results)
    check_disk_space(found)
    return int(ExitCode.FAILED_TRIALS if len(found.refused) == len(found.study.contexts) else ExitCode.DONE)


def _show(answer: "StudyAnswer", options: Mapping[str, Any]) -> None:
    """Write the answer after a run, in the form and to the place that the options name."""
    from pgversus.report.json_document import json_pieces, study_document  # noqa: PLC0415 - not for `--help`

    with use_language(language_shown(options)):
        text = json_pieces(study_document(answer)) if options["as_json"] else terminal_answer(answer, options)
        write_answer(text, options["output"], answer.results)


def terminal_answer(answer: "StudyAnswer", options: Mapping[str, Any], *, with_published: bool = False) -> Rendered:
    """Return the answer as text for a terminal or a pipe: on one screen, complete, or the verdict sentence alone."""
    from pgversus.report.summary import print_sentences, print_summary  # noqa: PLC0415 - not for `--help`
    from pgversus.report.terminal import print_study_answer  # noqa: PLC0415 - the same

    def print_to(console: "Console", columns: int | None) -> None:
        if options["quiet"]:
            print_sentences(answer, console, columns)
        elif options["verbose"] or with_published:
            print_study_answer(answer, console, columns, with_published=with_published)
        else:
            print_summary(answer, console, columns)

    return rendered(print_to, options["output"])


def language_shown(options: Mapping[str, Any]) -> Language:
    """Return the language of the answer; English in a document for programs."""
    return Language.ENGLISH if options["as_json"] else options["language"]


def known_findings(path: str | None) -> "KnownFindings | None":
    """Return the findings in a document; StudyError if it cannot be read or is a different document."""
    from pgversus.answers.known_findings import KnownFindings  # noqa: PLC0415 - not for `--help`

    return None if path is None else KnownFindings(read_text(path, "--known"), path)


def exit_code(answer: "StudyAnswer", fail_on: tuple[str, ...], *, known: "KnownFindings | None" = None) -> ExitCode:
    """Return the exit code for an answer. known: findings of an upgrade check that do not count."""
    from pgversus.study.design import StopReason  # noqa: PLC0415

    confirmation = answer.confirmation
    if StopReason.INTERRUPTED in (answer.stopped, None if confirmation is None else confirmation.stopped):
        return ExitCode.INTERRUPTED
    if any(verdict in fail_on for verdict in _verdicts(answer, known)):
        return ExitCode.FAIL_ON
    return ExitCode.FAILED_TRIALS if _has_failed(answer, known) else ExitCode.DONE


def _has_failed(answer: "StudyAnswer", known: "KnownFindings | None") -> bool:
    """Return whether a trial failed or, in an upgrade check, a statement whose failure is not known."""
    from pgversus.answers.findings import Finding  # noqa: PLC0415 - the same
    from pgversus.answers.upgrade import upgrade_answers  # noqa: PLC0415 - the same
    from pgversus.study.study import StudyKind  # noqa: PLC0415 - the same

    if answer.study.kind is StudyKind.UPGRADE_CHECK:
        findings = ((upgrade.target, one) for upgrade in upgrade_answers(answer) for one in upgrade.findings)
        failed = ((target, one) for target, one in findings if one.failure or one.finding is Finding.FAILS)
        return not all(known is not None and known.has(target, one) for target, one in failed)
    return any(one.failed_trials or one.failure for one in answer.answers) or any(
        one.failed for one in answer.unanswered
    )


def _verdicts(answer: "StudyAnswer", known: "KnownFindings | None") -> Iterator[str]:
    """Yield the results in the words of --fail-on; contexts that were not measured are undecided."""
    from pgversus.answers.answer import OTHER_ORDER, OTHER_ROWS  # noqa: PLC0415 - the same
    from pgversus.study.study import StudyKind  # noqa: PLC0415 - the same

    if answer.study.kind is StudyKind.UPGRADE_CHECK:
        yield from _findings(answer, known)
        return
    yield from (result.verdict.value for one in answer.answers for result in one.analysis.results)
    yield from ("undecided" for _ in answer.unanswered)
    if any(caveat.slug in (OTHER_ROWS, OTHER_ORDER) for one in answer.answers for caveat in one.caveats):
        yield "rows"


def _findings(answer: "StudyAnswer", known: "KnownFindings | None") -> Iterator[str]:
    """Yield the findings of an upgrade check that are not known, in the words of --fail-on."""
    from pgversus.answers.findings import OPEN, Finding  # noqa: PLC0415 - the same
    from pgversus.answers.upgrade import upgrade_answers  # noqa: PLC0415 - the same

    for upgrade in upgrade_answers(answer):
        for one in upgrade.findings:
            # The time of a statement contains its own planning.
            if one.statement.is_planning or (known is not None and known.has(upgrade.target, one)):
                continue
            if one.finding in OPEN:
                yield "undecided"
            else:
                yield "rows" if one.finding is Finding.OTHER_ROWS else one.finding.value
                if one.finding is Finding.OTHER_ROWS and one.is_confirmed_slower(upgrade.target):
                    yield Finding.SLOWER.value
