"""`pgversus plans`: compare the plans of the same statements, from servers or files."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgversus.cli.configuration import CONF, carried_settings, not_carried
from pgversus.cli.options import LANGUAGE, OUTPUT, RUN_AS, HostlessCommand, build_options, with_requested_manner
from pgversus.cli.output import read_stdin, read_text, write_answer
from pgversus.cli.question import arms_options, dataset_of, variables_option
from pgversus.cli.statements import collected
from pgversus.errors import PlanError
from pgversus.host.output_file import check_output
from pgversus.postgres.labels import labelled_server
from pgversus.study.comparison import expand_arms, with_equal_bytes
from pgversus.study.design import DesignChoices, design_of
from pgversus.study.settings import SettingLevels, check_repeated_names, parse_setting
from pgversus.study.study import Study, StudyKind
from pgversus.study.workload import PgbenchWorkload
from pgversus.text.translation import Language, use_language

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgversus.answers.plans import PlansAnswer
    from pgversus.plans.plan import Plan

_STDIN = "-"
_OF_PLANS = ".json"
_OF_FILES = ("names", "form", "as_json", "language", "output")
"""Parameters that apply to files with plans as well."""
_FORMATS = ("text", "markdown", "html")


@click.command(cls=HostlessCommand, short_help="Compare the plans of the same statements.")
@click.argument("names", nargs=-1, required=True, metavar="BASELINE CONTENDER...")
@arms_options
@variables_option("scripts")
@click.option(
    "--statements",
    "sources",
    multiple=True,
    metavar="SOURCE",
    help="Statements of an application in place of scripts, as for upgrade-check; repeatable.",
)
@CONF
@build_options
@RUN_AS
@click.option(
    "--format", "form", type=click.Choice(_FORMATS), default="text", show_default=True, help="Format of the report."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead.")
@LANGUAGE
@OUTPUT
def plans(names: tuple[str, ...], **options: Any) -> None:
    """Compare the plans of each statement on the first server with those on the others.

    Servers, settings, data and scripts are specified as for compare. Each statement is explained and run a few
    times on each server under the settings of the load, then rolled back; the rows that it returns are compared as
    well. Nothing is measured.

    With --statements, a statement of an application is planned with its recorded values or with values chosen from
    statistics, as in an upgrade check. Without either, which is usual if only the schema is loaded, its generic plans
    are compared.

    Instead of servers, files with the output of EXPLAIN (FORMAT JSON) can be specified, or - for standard input.
    Formatting differences between major versions are ignored.

    \b
    pgversus plans 16 17 --setup setup.sql -f query.sql
    pgversus plans 17 --set enable_hashjoin=on,off -i -s 10 -f query.sql
    pgversus plans 16 18 --restore schema.dump --statements statements.csv
    pgversus plans old.json new.json
    """  # noqa: D301 - \b is the marker of click for lines that must not be joined
    if options["as_json"] and options["form"] not in ("text", "json"):
        raise click.UsageError(f"--json and --format {options['form']} cannot be used together")
    are_files = [name == _STDIN or name.endswith(_OF_PLANS) for name in names]
    if any(are_files) and not all(are_files):
        raise click.UsageError("specify either servers or files with plans, not both")
    if all(are_files):
        _check_options_of_files(options)
    if options["output"] is not None:
        check_output(Path(options["output"]))
    answer = _of_files(names) if all(are_files) else _of_servers(names, options)
    with use_language(Language.ENGLISH if options["as_json"] else options["language"]):
        content = _content(answer, "json" if options["as_json"] else options["form"])
    write_answer(content, options["output"], "")


def _check_options_of_files(options: dict[str, Any]) -> None:
    """Raise UsageError for an option that applies only to servers."""
    for option in click.get_current_context().command.params:
        if option.name not in _OF_FILES and options.get(option.name or "") not in (None, (), False):
            raise click.UsageError(f"{option.opts[-1]} cannot be used with files of plans")


def _of_servers(names: "Sequence[str]", options: dict[str, Any]) -> "PlansAnswer":
    from pgversus.cli.progress import TerminalProgress  # noqa: PLC0415 - not for `--help`
    from pgversus.cli.question import check_tables, explained_comparison_of, study_of  # noqa: PLC0415 - the same
    from pgversus.host.identity import server_user  # noqa: PLC0415 - the same
    from pgversus.lab.compared_plans import compare_plans, compare_statement_plans  # noqa: PLC0415 - the same
    from pgversus.postgres.client import fixed_client  # noqa: PLC0415 - the same
    from pgversus.report.console import SafeConsole  # noqa: PLC0415 - the same

    if options["conf"] is not None and not options["sources"]:
        raise click.UsageError("--conf can be used only with --statements")
    if options["sources"]:
        study, compare = _study_of_statements(names, options), compare_statement_plans
    else:
        comparison = explained_comparison_of({**options, "servers": names})
        check_tables(comparison)
        study, compare = study_of(comparison), compare_plans
    user = server_user(options["run_as"])
    with TerminalProgress(SafeConsole(stderr=True)) as progress:
        return compare(with_requested_manner(study, options), user, fixed_client(user), progress)


def _study_of_statements(names: "Sequence[str]", options: dict[str, Any]) -> "Study":
    from pgversus.study.application import contexts_of  # noqa: PLC0415 - not for `--help`

    if any(options[name] for name in ("files", "builtins", "select_only", "skip_some_updates", "variables")):
        raise click.UsageError("--statements cannot be used together with scripts or their variables")
    settings = [parse_setting(text) for text in options["settings"]]
    check_repeated_names(settings)
    carried = carried_settings(options["conf"], {one.name.lower() for one in settings})
    settings += [SettingLevels(name=one.name, values=(one.value,)) for one in carried.settings]
    load, design = PgbenchWorkload(scripts=(), scale=options["scale"]), design_of(DesignChoices(seed=0))
    servers = [labelled_server(name) for name in names]
    arms, factors = expand_arms(servers, settings, workload=load, dataset=dataset_of(options))
    contexts, statements = contexts_of(
        collected(options["sources"]), load, with_equal_bytes(arms), factors=factors, design=design
    )
    return Study(
        name="plans",
        title="",
        question="",
        contexts=contexts,
        seed=0,
        budget_s=design.budget_s,
        kind=StudyKind.UPGRADE_CHECK,
        statements=statements,
        skips_missing_settings=bool(carried.settings),
        carried_settings=frozenset(one.name for one in carried.settings),
        skipped=not_carried(carried.left_out, options["conf"]),
    )


def _of_files(names: "Sequence[str]") -> "PlansAnswer":
    from pgversus.answers.plans import ComparedPlans, PlansAnswer  # noqa: PLC0415 - the same
    from pgversus.plans.difference import difference  # noqa: PLC0415 - not for `--help`
    from pgversus.records.plans import StatementName  # noqa: PLC0415 - the same

    if len(names) < 2:  # noqa: PLR2004 - a baseline and a contender
        raise click.UsageError("specify two or more files, the baseline first")
    if names.count(_STDIN) > 1:
        raise click.UsageError("standard input can be read only once")
    baseline, *contenders = ((name, _plans_in(name)) for name in names)
    compared = []
    for label, found in contenders:
        if len(found) != len(baseline[1]):
            raise _other_number(label, len(found), baseline[0], len(baseline[1]))
        for number, pair in enumerate(zip(baseline[1], found, strict=True), start=1):
            compared.append(
                ComparedPlans(
                    statement=StatementName(number=number, text=pair[0].query or ""),
                    labels=(baseline[0], label),
                    plans=pair,
                    difference=difference(*pair),
                )
            )
    return PlansAnswer(compared=tuple(compared))


def _plans_in(name: str) -> "list[Plan]":
    from pgversus.plans.explain import read_plans  # noqa: PLC0415 - not for `--help`

    if name == _STDIN:
        return read_plans(read_stdin("plans"), "standard input")
    return read_plans(read_text(name, "plans"), name)


def _content(answer: "PlansAnswer", form: str) -> str:
    from pgversus.report.html import plans_html  # noqa: PLC0415 - the same
    from pgversus.report.markdown import plans_markdown  # noqa: PLC0415 - the same
    from pgversus.report.plans import plans_document, plans_text  # noqa: PLC0415 - not for `--help`

    if form == "json":
        return json.dumps(plans_document(answer), indent=2) + "\n"
    return {"text": plans_text, "markdown": plans_markdown, "html": plans_html}[form](answer)


def _other_number(label: str, found: int, baseline: str, expected: int) -> PlanError:
    return PlanError(
        "the files contain different numbers of plans",
        slug="plan-other-number",
        where=label,
        found=f"{found} plans",
        expected=f"{expected}, as in {baseline}",
        to_do="explain the same statements in the same order",
    )
