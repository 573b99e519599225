"""Reads a study file: text in, a checked `Study` out, or all problems of the file at once."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from pgversus.errors import StudyError
from pgversus.study.build_options import USUAL_MANNER, requested_manner
from pgversus.study.design import DesignChoices
from pgversus.study.file import schema
from pgversus.study.file.application import upgrade_check_of
from pgversus.study.file.contexts import (
    StudyPlan,
    check_treatment_count,
    choices_of,
    contexts_of,
    designs_for,
    with_one_stopping_rule,
)
from pgversus.study.file.description import listed, nearest
from pgversus.study.file.document import Path, as_toml, find_places, parse_document, shown
from pgversus.study.file.factors import NameServer, matrix_of
from pgversus.study.file.keys import Contents, FindDump, ReadFile, settings_of
from pgversus.study.file.matrix import (
    Matrix,
    baseline_level,
    check_values_for_repeats,
    check_workload_kinds,
    compared_factor,
)
from pgversus.study.file.problems import Problems, valid_part
from pgversus.study.file.selection import selection_of
from pgversus.study.file.workloads import datasets_of, loads_of, workloads_of
from pgversus.study.published import read_figures
from pgversus.study.servers import ServerName, parse_server
from pgversus.study.study import Study

USUAL = "quick"
"""The profile used by default, if the file has a profile of this name."""


def chosen_profile(profiles: Mapping[str, Any], requested: str | None, problems: Problems) -> str | None:
    """Return the name of the profile to use; None to use the file without a profile."""
    if requested is None:
        return USUAL if USUAL in profiles else None
    if requested in profiles:
        return requested
    if problems.concern("profiles", requested):
        return None
    meant = nearest(requested, list(profiles))
    problems.add(
        ("profiles",),
        StudyError(
            f"unknown profile {shown(requested)}",
            slug="study-unknown-profile",
            found=shown(requested),
            expected=listed(profiles, show=as_toml) or "none: the file has no [profiles.NAME]",
            to_do=f"--profile {meant}" if meant else "remove --profile",
        ),
    )
    return None


def with_profile(document: Mapping[str, Any], profile: str | None) -> tuple[dict[str, Any], dict[Path, Path]]:
    """Return the document with the profile merged in, without `title` and `profiles`, and origins of replaced keys."""
    base = {key: value for key, value in document.items() if key not in ("title", "profiles")}
    origins: dict[Path, Path] = {}
    if profile is None:
        return base, origins
    return _merged(base, document["profiles"][profile], origins, (), ("profiles", profile)), origins


def _merged(
    base: Mapping[str, Any], changes: Mapping[str, Any], origins: dict[Path, Path], at: Path, there: Path
) -> dict[str, Any]:
    result = dict(base)
    for key, value in changes.items():
        if isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = _merged(result[key], value, origins, (*at, key), (*there, key))
        else:
            result[key] = value
            origins[*at, key] = (*there, key)
    return result


def server_as_written(text: str) -> tuple[str, ServerName]:
    """Return the text itself as the label, for files without URIs, which may contain a password."""
    return text, parse_server(text)


def read_study(
    text: str,
    *,
    name: str,
    read: ReadFile,
    find_dump: FindDump,
    profile: str | None = None,
    seed: int,
    requested_seed: int | None = None,
    budget_s: float | None = None,
    name_server: NameServer = server_as_written,
) -> Study:
    """Return the study that a file describes, with all combinations expanded.

    name: name of the file, for messages and for the study.
    read: maps a path in the file to its absolute path and content; every file is read once, now.
    find_dump: maps a path, and the name of a database, to the dump to restore.
    profile: None uses `quick` if the file has it.
    seed: used if the file has none.
    requested_seed, budget_s: replace those of the file.
    name_server: returns label and name of a server.
    Raises only StudyFileError, with all problems in the order of the file.
    """
    text = text.removeprefix("\ufeff")
    document = parse_document(text, name)
    places = find_places(text)
    problems = Problems(name, places)
    valid = valid_part(document, problems)
    chosen = chosen_profile(valid.get("profiles", {}), profile, problems)
    if chosen != profile and profile is not None:
        # Without its profile the rest of the file cannot be checked.
        problems.refuse()
    merged, origins = with_profile(valid, chosen)
    if chosen is not None:
        problems.bring_up(("profiles", chosen))
    problems.places = replace(places, origins=origins)
    sections = schema.Sections.model_validate(merged)
    contents = Contents(read, find_dump, problems)
    figures = _figures(sections, contents, problems)
    choices = choices_of(sections.design, problems, seed=seed)
    if requested_seed is not None:
        choices = replace(choices, seed=requested_seed)
    if budget_s is not None:
        choices = with_one_stopping_rule(replace(choices, budget_s=budget_s), problems)
    plan = _plan(sections, contents, problems, choices, name_server=name_server)
    problems.refuse()
    # The plan is never None here, because that would have been a problem.
    contexts = () if plan is None else contexts_of(plan, problems)
    problems.refuse()
    design = contexts[0].comparison.design
    study = Study(
        name=_name(name, chosen),
        title=" ".join(valid["title"].split()),
        question=sections.question or "",
        contexts=contexts,
        seed=design.seed,
        budget_s=design.budget_s,
        skips_missing_settings=sections.if_missing == "skip",
        published=figures,
        metrics=tuple(sections.metrics or ()),
        build_manner=requested_manner(USUAL_MANNER, sections.build_profile, sections.build_system),
    )
    if sections.application is not None:
        as_recorded = sections.load is None or sections.load.protocol is None
        return upgrade_check_of(study, sections.application, contents, problems, as_recorded=as_recorded)
    return study


def _figures(sections: schema.Sections, contents: Contents, problems: Problems) -> str | None:
    """Return the checked text of the published figures; None if the file names none."""
    if sections.published is None:
        return None
    text = contents.unless_unread(sections.published, ("published",))
    if text is not None:
        with problems.catch(("published",)):
            read_figures(text)
    return text


def _plan(
    sections: schema.Sections,
    contents: Contents,
    problems: Problems,
    choices: DesignChoices,
    *,
    name_server: NameServer,
) -> StudyPlan | None:
    """Return the plan of the contexts, usable only if there are no problems; None if there is nothing to compare."""
    shared = settings_of(sections.settings, ("settings",), problems)
    matrix = _matrix(sections, contents, name_server, problems)
    compared = compared_factor(sections, matrix, problems)
    baseline = baseline_level(sections, matrix, compared, problems)
    check_values_for_repeats(matrix, compared, problems)
    check_workload_kinds(sections, matrix, compared, problems)
    designs = designs_for(matrix.workload.values, matrix.load.values, choices, problems)
    selection = selection_of(sections.exclude or (), sections.only or (), matrix, problems)
    check_treatment_count(matrix, problems)
    if compared is None:
        return None
    return StudyPlan(
        matrix=matrix,
        compared=compared,
        baseline=baseline,
        selection=selection,
        shared=shared,
        designs=designs,
    )


def _matrix(sections: schema.Sections, contents: Contents, name_server: NameServer, problems: Problems) -> Matrix:
    datasets = datasets_of(sections, contents, problems)
    loads = loads_of(sections, problems)
    workloads = workloads_of(sections, datasets, contents, problems)
    return matrix_of(
        sections, workloads=workloads, datasets=datasets, loads=loads, name_server=name_server, problems=problems
    )


def _name(file: str, profile: str | None) -> str:
    stem = PurePath(file).name.removesuffix(".toml")
    return stem if profile is None else f"{stem}-{profile}"
