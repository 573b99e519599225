"""Build the comparison that the options of `pgversus compare` describe."""

import math
import os
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from pgversus.cli.options import Command, Count, names_starting, with_options
from pgversus.cli.output import read_text, setup_files
from pgversus.errors import StudyError
from pgversus.postgres.labels import labelled_server
from pgversus.study.comparison import Comparison, expand_arms, with_equal_bytes
from pgversus.study.dataset import Dataset, Dump
from pgversus.study.design import Design, DesignChoices, design_of
from pgversus.study.metrics import JUDGED_BY_NAME
from pgversus.study.servers import RunningServer
from pgversus.study.settings import check_repeated_names, parse_setting
from pgversus.study.steps import operation_name, program_step, statement_step, verifying_sql, with_own_names
from pgversus.study.study import Context, Study, StudyKind
from pgversus.study.workload import (
    BUILTIN_SCRIPTS,
    VARIABLE_NAME,
    Operation,
    PgbenchWorkload,
    QueryMode,
    Script,
    Workload,
    check_for_secret_variables,
    check_load,
    find_builtin,
    split_weight,
    threads_used,
)
from pgversus.text.units import (
    parse_duration,
    parse_pin,
    parse_precision,
    parse_share,
    parse_whole_seconds,
    parse_window,
)

_DATA = (
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="NAME=V[,V...]",
        help="PostgreSQL setting for all arms; several values create one arm per server and value; repeatable.",
    ),
    click.option(
        "--restore",
        type=click.Path(),
        metavar="DUMP",
        help="Dump of one database made by pg_dump (any format), or a base backup or data directory of the same major "
        "version as one of the servers; restored on each arm before any --setup.",
    ),
    click.option(
        "--database",
        metavar="NAME",
        help="Database of a base backup or data directory.  [default: the only one besides postgres]",
    ),
    click.option(
        "--setup", multiple=True, metavar="FILE", help="SQL file that psql runs once on each arm; repeatable."
    ),
    click.option("-i", "--initialize", is_flag=True, help="Create pgbench's tables on each arm, before any --setup."),
    click.option(
        "-s",
        "--scale",
        type=Count(min=1),
        metavar="N",
        help="Scale factor for -i, and :scale in scripts.  [default: 1]",
    ),
    click.option(
        "--full-statistics",
        is_flag=True,
        help="Run ANALYZE with a statistics target at which it reads every row of tables with up to three million "
        "rows, so that plans do not differ because of sampling.",
    ),
)
_SCRIPTS = (
    click.option(
        "-f",
        "--file",
        "files",
        multiple=True,
        metavar="FILE[@W]",
        help="pgbench script, with an optional weight; repeatable.",
    ),
    click.option(
        "-b",
        "--builtin",
        "builtins",
        multiple=True,
        metavar="NAME[@W]",
        help="Built-in pgbench script, with an optional weight; repeatable.",
        shell_complete=names_starting(lambda: BUILTIN_SCRIPTS),
    ),
    click.option("-S", "--select-only", is_flag=True, help="Same as -b select-only."),
    click.option("-N", "--skip-some-updates", is_flag=True, help="Same as -b simple-update."),
)


def variables_option(users: str) -> Callable[[Command], Command]:
    """Return the option for variables. users: what can use them, for the help text."""
    return click.option(
        "-D",
        "--define",
        "variables",
        multiple=True,
        metavar="VAR=VALUE",
        help=f"Variable for {users}; repeatable.",
    )


def arms_options(command: Command) -> Command:
    """Add the options for settings, data and scripts."""
    return with_options(command, (*_DATA, *_SCRIPTS))


def data_options(command: Command) -> Command:
    """Add the options for settings and data."""
    return with_options(command, _DATA)


def parse_variable(text: str) -> tuple[str, str]:
    """Return name and value of pgbench's `-D NAME=VALUE`; StudyError without a name or an equals sign."""
    name, equals, value = text.partition("=")
    if not re.fullmatch(VARIABLE_NAME, name) or not equals:
        raise StudyError(
            f'invalid variable "{text}"',
            slug="study-bad-variable",
            where=f"-D {text}",
            found=f'"{text}"',
            expected="NAME=VALUE, with letters, digits and _ in the name",
            to_do="use -D rows=1000, and :rows in the script",
        )
    return name, value


_OF_A_LOAD = {
    "files": "-f",
    "builtins": "-b",
    "select_only": "-S",
    "skip_some_updates": "-N",
    "clients": "-c",
    "jobs": "-j",
    "protocol": "-M",
    "rate": "-R",
    "rewrite": "--rewrite",
}
"""Options that apply to pgbench only; none has a value unless it is given."""


def operation_of(options: Mapping[str, Any]) -> Operation | None:
    """Return the operation that the options describe, None for a load; StudyError for conflicting options."""
    if not options["operations"] and not options["commands"]:
        _check_operation_given(options)
        return None
    _check_one_kind(options)
    steps = with_own_names(
        [
            *(statement_step(sql, "--operation") for sql in options["operations"]),
            *(program_step(command, "--command") for command in options["commands"]),
        ]
    )
    return Operation(
        name=operation_name(steps),
        steps=steps,
        verify=tuple(verifying_sql(sql, "--verify") for sql in options["verify"]),
    )


def prepared(dataset: Dataset, options: Mapping[str, Any]) -> Dataset:
    """Return the dataset with its --prepare files; StudyError for variables that no file uses."""
    if not options["prepare"]:
        if options["variables"]:
            raise StudyError(
                "an operation has no scripts that use variables",
                slug="study-idle-variables",
                where=f"-D {options['variables'][0]}",
                found="-D without --prepare",
                expected="--prepare FILE that uses the variable",
                to_do="omit -D, or add --prepare FILE",
            )
        return dataset
    return replace(
        dataset,
        prepare=setup_files(options["prepare"], "--prepare"),
        variables=tuple(parse_variable(text) for text in options["variables"]),
    )


def _check_operation_given(options: Mapping[str, Any]) -> None:
    given = [flag for flag, name in (("--prepare", "prepare"), ("--verify", "verify")) if options[name]]
    if given:
        raise StudyError(
            f"{given[0]} requires an operation",
            slug="study-no-operation",
            where=" and ".join(given),
            found="neither --operation nor --command",
            expected="an operation to time",
            to_do="add --operation 'VACUUM pgbench_accounts'; for a load, create its tables with --setup FILE",
        )


def _check_one_kind(options: Mapping[str, Any]) -> None:
    kinds = [flag for flag, name in (("--operation", "operations"), ("--command", "commands")) if options[name]]
    kinds += [flag for name, flag in _OF_A_LOAD.items() if options[name] not in (None, (), False)]
    if len(kinds) > 1:
        raise StudyError(
            "more than one kind of workload is given",
            slug="study-two-workloads",
            where=" with ".join(kinds[:2]),
            found=" and ".join(kinds),
            expected="statements (--operation), programs (--command), or a load (-f, -b, -S, -N, -c, -j, -M, -R)",
            to_do=f"omit {' and '.join(kinds[1:])}; a study file can combine statements and programs in steps",
        )


def comparison_of(options: Mapping[str, Any]) -> Comparison:
    """Return the comparison that the options describe; files are read here, once. StudyError for the first problem."""
    operation = operation_of(options)
    workload = operation or _load(options)
    dataset = prepared(dataset_of(options), options) if operation else dataset_of(options)
    return _comparison(options, workload, dataset, _design(options, workload))


def explained_comparison_of(options: Mapping[str, Any]) -> Comparison:
    """Return the comparison of a load whose plans are captured but which is not run."""
    design = design_of(DesignChoices(seed=0), is_open_loop=False)
    return _comparison(options, _load(options), dataset_of(options), design)


def _comparison(options: Mapping[str, Any], workload: Workload, dataset: Dataset, design: Design) -> Comparison:
    settings = [parse_setting(text) for text in options["settings"]]
    check_repeated_names(settings)
    servers = [labelled_server(text) for text in options["servers"]]
    arms, factors = expand_arms(servers, settings, workload=workload, dataset=dataset)
    return Comparison(arms=with_equal_bytes(arms), factors=factors, design=design)


def check_tables(comparison: Comparison) -> None:
    """Raise StudyError for a built-in script on a server that pgversus starts without any tables."""
    for arm in comparison.arms:
        builtins = [one.name for one in arm.workload.scripts if one.is_builtin] if arm.workload.has_plans else []
        has_data = isinstance(arm.server, RunningServer) or not arm.dataset.is_empty
        if builtins and not has_data:
            raise StudyError(
                "built-in scripts need pgbench's tables",
                slug="study-no-tables",
                where=f"{builtins[0]}, on {arm.label}",
                found="none of -i, --restore, --setup",
                expected="data for a server that pgversus starts",
                to_do="add -i, and -s N for more than 100,000 accounts",
            )


def study_of(comparison: Comparison, kind: StudyKind = StudyKind.COMPARISON) -> Study:
    """Return a study with this comparison as its only context. kind: a kind with one context."""
    return Study(
        name="-vs-".join(arm.label for arm in comparison.arms),
        title="",
        question="",
        contexts=(Context(number=1, levels=(), comparison=comparison),),
        seed=comparison.design.seed,
        budget_s=comparison.design.budget_s,
        kind=kind,
    )


def _load(options: Mapping[str, Any]) -> PgbenchWorkload:
    builtins = list(options["builtins"])
    builtins += ["select-only"] if options["select_only"] else []
    builtins += ["simple-update"] if options["skip_some_updates"] else []
    rate = options.get("rate")
    if rate is not None and not math.isfinite(rate):
        raise StudyError(
            "invalid rate",
            slug="study-bad-rate",
            where=f"-R {rate}",
            found=str(rate),
            expected="a finite number of transactions per second",
            to_do="use a rate such as -R 1000",
        )
    scripts = []
    for text in builtins:
        name, weight = split_weight(text, "-b")
        scripts.append(Script(name=find_builtin(name), weight=weight))
    for text in options["files"]:
        name, weight = split_weight(text, "-f")
        scripts.append(Script(name=name, weight=weight, text=read_text(name, "-f")))
    if not scripts:
        may_be_operation = "operations" in options
        raise StudyError(
            "no workload is given",
            slug="study-no-workload",
            where=click.get_current_context().command_path,
            found="none of -f, -b, -S, -N" + (", --operation, --command" if may_be_operation else ""),
            expected="one or more pgbench scripts" + (", or an operation" if may_be_operation else ""),
            to_do="-i -b tpcb-like for pgbench's default transaction, -i -S for point lookups, -f FILE for a script",
        )
    clients = options.get("clients") or 1
    variables = tuple(parse_variable(text) for text in options["variables"])
    check_for_secret_variables(variables)
    load = PgbenchWorkload(
        scripts=tuple(scripts),
        clients=clients,
        threads=threads_used(options.get("jobs") or len(os.sched_getaffinity(0)), clients),
        query_mode=QueryMode(options.get("protocol") or QueryMode.SIMPLE),
        variables=variables,
        rate=rate,
        scale=options["scale"],
        rewrite=_rewrite(options.get("rewrite"), scripts),
    )
    check_load(load)
    return load


def _rewrite(name: str | None, scripts: Sequence[Script]) -> Script | None:
    if name is None:
        return None
    if len(scripts) != 1 or scripts[0].is_builtin:
        raise StudyError(
            "--rewrite requires a load with a single script file",
            slug="study-no-rewrite",
            where=f"--rewrite {name}",
            found=", ".join(script.name for script in scripts),
            expected="one -f FILE, whose rows the rewrite returns as well",
            to_do="specify only the script whose plan changed, or omit --rewrite",
        )
    return Script(name=name, text=read_text(name, "--rewrite"))


def dataset_of(options: Mapping[str, Any]) -> Dataset:
    """Return the data that the options describe; StudyError for a file that cannot be read or is not a dump."""
    scale = (options["scale"] or 1) if options["initialize"] else None
    return Dataset(
        restore=_restored(options["restore"], options["database"]),
        pgbench_scale=scale,
        setup_files=setup_files(options["setup"], "--setup"),
        full_statistics=options["full_statistics"],
    )


def _restored(path: str | None, database: str | None) -> Dump | None:
    from pgversus.data.dumps import dump_at  # noqa: PLC0415 - not for `--help`

    if path is not None:
        return dump_at(path, "--restore", database)
    if database is not None:
        raise StudyError(
            "--database requires --restore",
            slug="study-idle-database",
            where=f"--database {database}",
            found="no --restore",
            expected="the data directory or base backup that has this database",
            to_do="add --restore DIRECTORY; a database of an external server is named in its URI",
        )
    return None


def _design(options: Mapping[str, Any], workload: Workload) -> Design:
    def read(name: str, parse: Callable[[str, str], float]) -> float | None:
        return None if options[name] is None else parse(options[name], f"--{name}")

    choices = DesignChoices(
        metric=JUDGED_BY_NAME[options["metric"]] if options["metric"] else None,
        margin=read("margin", parse_share),
        precision=read("precision", parse_precision),
        budget_s=read("budget", parse_duration),
        max_blocks=options["max_blocks"],
        fixed_blocks=options["blocks"],
        window=None if options["window"] is None else parse_window(options["window"], "--window"),
        rounds=options["windows"],
        warm_up_s=read("warmup", parse_whole_seconds),
        pin=None if options["pin"] is None else parse_pin(options["pin"], "--pin"),
        seed=secrets.randbelow(2**31) if options["seed"] is None else options["seed"],
    )
    return design_of(choices, is_open_loop=workload.is_open_loop, is_operation=workload.runs_once)
