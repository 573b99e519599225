"""From the flags of `pgversus compare` to the question they ask."""

import hashlib
import math
import os
import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pgversus.cli.values import parse_duration, parse_share, parse_variable, parse_whole_seconds
from pgversus.errors import StudyError
from pgversus.study.comparison import Comparison, expand_arms
from pgversus.study.design import DEFAULT_BUDGET_S, MARGINS, MOST_BLOCKS, Design
from pgversus.study.metrics import JUDGED, Metric
from pgversus.study.servers import RunningServer, ServerName, parse_server
from pgversus.study.settings import parse_setting, refuse_repeated_names
from pgversus.study.workload import (
    Dataset,
    PgbenchWorkload,
    QueryMode,
    Script,
    SetupFile,
    find_builtin,
    refuse_impossible_load,
    split_weight,
)

METRICS = {metric.value.removesuffix("_s"): metric for metric in JUDGED}
"""The metrics that a verdict may be asked of, by the word of --metric."""


def comparison_of(options: Mapping[str, Any]) -> Comparison:
    """The comparison that these flags ask for; files are read now, once. StudyError for the first thing wrong."""
    settings = [parse_setting(text) for text in options["settings"]]
    refuse_repeated_names(settings)
    named = [(text, parse_server(text)) for text in options["servers"]]
    workload = _workload(options)
    arms, factors = expand_arms([(_label(text, server), server) for text, server in named], settings)
    refuse_impossible_load(workload)
    return Comparison(
        arms=arms, factors=factors, workload=workload, dataset=_dataset(options), design=_design(options, workload)
    )


def _label(text: str, server: ServerName) -> str:
    if isinstance(server, RunningServer):
        from pgversus.postgres.session import uri_label  # noqa: PLC0415 - psycopg's import is for those who need it

        return uri_label(server.uri)
    # A path that is no UTF-8 can be opened, and not be shown or stored as it is.
    return os.fsencode(text).decode(errors="replace")


def _workload(options: Mapping[str, Any]) -> PgbenchWorkload:
    builtins = list(options["builtins"])
    builtins += ["select-only"] if options["select_only"] else []
    builtins += ["simple-update"] if options["skip_some_updates"] else []
    if options["rate"] is not None and not math.isfinite(options["rate"]):
        raise StudyError(
            "this is no rate",
            slug="study-bad-rate",
            where=f"-R {options['rate']}",
            found=str(options["rate"]),
            expected="transactions per second",
            to_do="-R 1000",
        )
    scripts = []
    for text in builtins:
        name, weight = split_weight(text, "-b")
        scripts.append(Script(name=find_builtin(name), weight=weight))
    for text in options["files"]:
        name, weight = split_weight(text, "-f")
        scripts.append(Script(name=name, weight=weight, text=_read_text(name, "-f")))
    return PgbenchWorkload(
        scripts=tuple(scripts) or (Script(name="tpcb-like"),),
        clients=options["clients"],
        threads=options["jobs"],
        query_mode=QueryMode(options["protocol"]),
        variables=tuple(parse_variable(text) for text in options["variables"]),
        rate=options["rate"],
        scale=options["scale"],
    )


def _dataset(options: Mapping[str, Any]) -> Dataset:
    files = []
    for path in options["setup"]:
        content = _read_bytes(path, "--setup")
        files.append(SetupFile(path=str(Path(path).absolute()), sha256=hashlib.sha256(content).hexdigest()))
    return Dataset(pgbench_scale=(options["scale"] or 1) if options["initialize"] else None, setup_files=tuple(files))


def _design(options: Mapping[str, Any], workload: PgbenchWorkload) -> Design:
    if options["blocks"] is not None and (options["budget"] is not None or options["max_blocks"] is not None):
        raise StudyError(
            "--blocks fixes the number of blocks, so there is nothing to limit",
            slug="study-two-designs",
            where="--blocks with --budget or --max-blocks",
            found="both",
            expected="one of them",
            to_do="leave --blocks out to stop when the answer is known",
        )
    metric = METRICS[options["metric"]] if options["metric"] else _usual_metric(workload)
    if metric is Metric.TPS and workload.is_open_loop:
        raise StudyError(
            "with a rate every arm does the same tps, so tps cannot tell them apart",
            slug="study-rate-and-tps",
            where="-R with --metric tps",
            found="tps",
            expected="a latency",
            to_do="leave --metric out (p95 latency is judged), or leave -R out",
        )
    design = Design(
        metric=metric,
        margin=parse_share(options["margin"], "--margin") if options["margin"] is not None else MARGINS[metric],
        budget_s=parse_duration(options["budget"], "--budget") if options["budget"] is not None else DEFAULT_BUDGET_S,
        max_blocks=options["max_blocks"] or MOST_BLOCKS,
        fixed_blocks=options["blocks"],
        seed=secrets.randbelow(2**31) if options["seed"] is None else options["seed"],
    )
    if options["windows"] is not None:
        design = replace(design, rounds=options["windows"], rounds_are_given=True)
    if options["window"] is not None:
        design = replace(design, window_s=parse_whole_seconds(options["window"], "--window"), window_is_given=True)
    if options["warm_up"] is not None:
        design = replace(design, warm_up_s=parse_whole_seconds(options["warm_up"], "--warm-up"))
    return design


def _usual_metric(workload: PgbenchWorkload) -> Metric:
    return Metric.LATENCY_P95 if workload.is_open_loop else Metric.TPS


def _read_text(path: str, flag: str) -> str:
    content = _read_bytes(path, flag)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise StudyError(
            "a script is not UTF-8",
            slug="study-script-encoding",
            where=f"{flag} {path}",
            found=str(error),
            expected="UTF-8, the encoding of the databases compared",
            to_do=f"iconv -t UTF-8 {path}",
        ) from error


def _read_bytes(path: str, flag: str) -> bytes:
    try:
        file = Path(path)
        if file.is_file() or not file.exists():
            return file.read_bytes()
    except OSError as error:
        raise _no_file(path, flag, error.strerror or str(error)) from error
    # psql and pgbench read it again, for each arm: a pipe would be empty by then.
    raise _no_file(path, flag, "a directory, a pipe or a device")


def _no_file(path: str, flag: str, found: str) -> StudyError:
    return StudyError(
        "a file cannot be read",
        slug="study-no-file",
        where=f"{flag} {os.fsencode(path).decode(errors='replace')}",
        found=found,
        expected="a regular file",
        to_do="give its path from this directory",
    )
