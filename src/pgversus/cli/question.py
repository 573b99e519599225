"""From the flags of `pgversus compare` to the question they ask."""

import math
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from pgversus.cli.files import read_text, setup_files
from pgversus.cli.operation import operation_of, prepared
from pgversus.cli.values import parse_variable
from pgversus.errors import StudyError
from pgversus.postgres.labels import labelled_server
from pgversus.study.comparison import Comparison, expand_arms, with_equal_bytes
from pgversus.study.dataset import Dataset
from pgversus.study.design import Design, DesignChoices, design_of
from pgversus.study.metrics import JUDGED_BY_NAME
from pgversus.study.settings import parse_setting, refuse_repeated_names
from pgversus.study.study import Context, Study
from pgversus.study.workload import (
    Operation,
    PgbenchWorkload,
    QueryMode,
    Script,
    Workload,
    find_builtin,
    refuse_impossible_load,
    refuse_secret_variables,
    split_weight,
    threads_used,
)
from pgversus.text.units import parse_duration, parse_pin, parse_share, parse_whole_seconds, parse_window

METRICS = JUDGED_BY_NAME
"""The metrics that a verdict may be asked of, by the word of --metric."""


def comparison_of(options: Mapping[str, Any]) -> Comparison:
    """The comparison that these flags ask for; files are read now, once. StudyError for the first thing wrong."""
    operation = operation_of(options)
    workload = operation or _load(options)
    dataset = prepared(_dataset(options), options) if operation else _dataset(options)
    return _comparison(options, workload, dataset, _design(options, workload))


def explained_comparison_of(options: Mapping[str, Any]) -> Comparison:
    """The same of a load that is not run: what is asked for is its plans."""
    design = design_of(DesignChoices(seed=0), is_open_loop=False)
    return _comparison(options, _load(options), _dataset(options), design)


def _comparison(options: Mapping[str, Any], workload: Workload, dataset: Dataset, design: Design) -> Comparison:
    settings = [parse_setting(text) for text in options["settings"]]
    refuse_repeated_names(settings)
    servers = [labelled_server(text) for text in options["servers"]]
    arms, factors = expand_arms(servers, settings, workload=workload, dataset=dataset)
    if isinstance(workload, PgbenchWorkload):
        refuse_impossible_load(workload)
    return Comparison(arms=with_equal_bytes(arms), factors=factors, design=design)


def study_of(comparison: Comparison) -> Study:
    """The smallest study: this comparison alone."""
    return Study(
        name="-vs-".join(arm.label for arm in comparison.arms),
        title="",
        question="",
        contexts=(Context(number=1, levels=(), comparison=comparison),),
        seed=comparison.design.seed,
        budget_s=comparison.design.budget_s,
    )


def _load(options: Mapping[str, Any]) -> PgbenchWorkload:
    builtins = list(options["builtins"])
    builtins += ["select-only"] if options["select_only"] else []
    builtins += ["simple-update"] if options["skip_some_updates"] else []
    rate = options.get("rate")
    if rate is not None and not math.isfinite(rate):
        raise StudyError(
            "this is no rate",
            slug="study-bad-rate",
            where=f"-R {rate}",
            found=str(rate),
            expected="transactions per second",
            to_do="-R 1000",
        )
    scripts = []
    for text in builtins:
        name, weight = split_weight(text, "-b")
        scripts.append(Script(name=find_builtin(name), weight=weight))
    for text in options["files"]:
        name, weight = split_weight(text, "-f")
        scripts.append(Script(name=name, weight=weight, text=read_text(name, "-f")))
    clients = options.get("clients") or 1
    variables = tuple(parse_variable(text) for text in options["variables"])
    refuse_secret_variables(variables)
    return PgbenchWorkload(
        scripts=tuple(scripts) or (Script(name="tpcb-like"),),
        clients=clients,
        threads=threads_used(options.get("jobs") or 1, clients),
        query_mode=QueryMode(options.get("protocol") or QueryMode.SIMPLE),
        variables=variables,
        rate=rate,
        scale=options["scale"],
    )


def _dataset(options: Mapping[str, Any]) -> Dataset:
    scale = (options["scale"] or 1) if options["initialize"] else None
    return Dataset(
        pgbench_scale=scale,
        setup_files=setup_files(options["setup"], "--setup"),
        full_statistics=options["full_statistics"],
    )


def _design(options: Mapping[str, Any], workload: Workload) -> Design:
    def read(name: str, parse: Callable[[str, str], float]) -> float | None:
        flag = f"--{name.replace('_', '-')}"
        return None if options[name] is None else parse(options[name], flag)

    choices = DesignChoices(
        metric=METRICS[options["metric"]] if options["metric"] else None,
        margin=read("margin", parse_share),
        budget_s=read("budget", parse_duration),
        max_blocks=options["max_blocks"],
        fixed_blocks=options["blocks"],
        window=None if options["window"] is None else parse_window(options["window"], "--window"),
        rounds=options["windows"],
        warm_up_s=read("warm_up", parse_whole_seconds),
        pin=None if options["pin"] is None else parse_pin(options["pin"], "--pin"),
        seed=secrets.randbelow(2**31) if options["seed"] is None else options["seed"],
    )
    if isinstance(workload, Operation):
        return design_of(choices, is_operation=True)
    return design_of(choices, is_open_loop=workload.is_open_loop)
