"""From --operation, --command, --verify and --prepare to an operation and the state that it needs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pgversus.cli.files import setup_files
from pgversus.cli.values import parse_variable
from pgversus.errors import StudyError
from pgversus.study.dataset import Dataset
from pgversus.study.steps import operation_name, program_step, statement_step, verifying_sql, with_own_names
from pgversus.study.workload import Operation

_OF_A_LOAD = {
    "files": "-f",
    "builtins": "-b",
    "select_only": "-S",
    "skip_some_updates": "-N",
    "clients": "-c",
    "jobs": "-j",
    "protocol": "-M",
    "rate": "-R",
}
"""Options that mean something to pgbench only; none of them has a value unless it is given."""


def operation_of(options: Mapping[str, Any]) -> Operation | None:
    """The operation that these flags ask for, None for a load; StudyError for flags that do not go together."""
    if not options["operations"] and not options["commands"]:
        _refuse_without_operation(options)
        return None
    _refuse_two_kinds(options)
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
    """What was loaded, and what psql then does to it once; StudyError for variables that nothing would read."""
    if not options["prepare"]:
        if options["variables"]:
            raise StudyError(
                "an operation has no scripts for variables",
                slug="study-idle-variables",
                where=f"-D {options['variables'][0]}",
                found="-D without --prepare",
                expected="--prepare FILE that uses it",
                to_do="leave -D out, or give the file that uses it with --prepare",
            )
        return dataset
    return replace(
        dataset,
        prepare=setup_files(options["prepare"], "--prepare"),
        variables=tuple(parse_variable(text) for text in options["variables"]),
    )


def _refuse_without_operation(options: Mapping[str, Any]) -> None:
    given = [flag for flag, name in (("--prepare", "prepare"), ("--verify", "verify")) if options[name]]
    if given:
        raise StudyError(
            f"{given[0]} is for an operation, and there is none",
            slug="study-no-operation",
            where=" and ".join(given),
            found="neither --operation nor --command",
            expected="what is done once and timed",
            to_do="--operation 'VACUUM pgbench_accounts'; for a load --setup FILE makes its tables",
        )


def _refuse_two_kinds(options: Mapping[str, Any]) -> None:
    kinds = [flag for flag, name in (("--operation", "operations"), ("--command", "commands")) if options[name]]
    kinds += [flag for name, flag in _OF_A_LOAD.items() if options[name] not in (None, (), False)]
    if len(kinds) > 1:
        raise StudyError(
            "more than one kind of work is to be timed",
            slug="study-two-workloads",
            where=" with ".join(kinds[:2]),
            found=" and ".join(kinds),
            expected="statements (--operation), programs (--command), or a load (-f, -b, -S, -N, -c, -j, -M, -R)",
            to_do=f"leave {' and '.join(kinds[1:])} out; a study file may mix statements and programs in steps",
        )
