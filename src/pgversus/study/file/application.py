"""The statements of an application in a study file, which make it an upgrade check."""

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from pgversus.errors import StudyError
from pgversus.statements.collection import Collection
from pgversus.statements.sources import read_source, read_sql
from pgversus.statements.statement import RecordedStatement
from pgversus.study.application import DEFAULT_COVERAGE, contexts_of
from pgversus.study.design import Design
from pgversus.study.file import schema
from pgversus.study.file.keys import Contents, quantity
from pgversus.study.file.problems import Problems
from pgversus.study.metrics import Metric
from pgversus.study.study import Study, StudyKind
from pgversus.study.targets import with_statistics
from pgversus.study.workload import PgbenchWorkload
from pgversus.text.units import parse_coverage

_PATH = ("application",)
_SQL = ".sql"


def upgrade_check_of(
    study: Study, table: schema.ApplicationTable, contents: Contents, problems: Problems, *, as_recorded: bool
) -> Study:
    """Return the upgrade check of an application; obstacles are added to the problems.

    study: has one context, with a workload that each statement replaces. It is returned unchanged if a file must not be
    read yet. as_recorded: whether the logs decide which statements are prepared.
    """
    coverage = quantity((*_PATH, "coverage"), table.coverage, parse_coverage, problems)
    statements = _statements(table, contents, problems)
    if len(study.contexts) != 1:
        problems.add(("factors",), _other_factors(len(study.contexts)))
    template = study.contexts[0].comparison
    load = template.workload
    assert isinstance(load, PgbenchWorkload)  # noqa: S101 - the template is a load
    if chosen := _chosen(template.design, load):
        problems.add(_PATH, _other_design(chosen))
    problems.refuse()
    if statements is None:
        return study
    with problems.catch((*_PATH, "statements")):
        arms, factors = with_statistics(template.arms, template.factors, table.statistics or ())
        contexts, known = contexts_of(
            statements,
            load,
            arms,
            factors=factors,
            design=template.design,
            coverage=DEFAULT_COVERAGE if coverage is None else coverage,
            as_recorded=as_recorded,
        )
        return replace(study, contexts=contexts, statements=known, kind=StudyKind.UPGRADE_CHECK)
    problems.refuse()
    return study


def _statements(
    table: schema.ApplicationTable, contents: Contents, problems: Problems
) -> Sequence[RecordedStatement] | None:
    """Return the statements of all files; None if one of them must not be read yet."""
    if not table.statements:
        problems.add(_PATH, _no_statements())
        return None
    collection, is_complete = Collection(), True
    for index, name in enumerate(table.statements):
        path = (*_PATH, "statements", index)
        text = contents.unless_unread(name, path)
        if text is None:
            is_complete = False
            continue
        with problems.catch(path):
            if name.endswith(_SQL):
                read_sql(name, text, PurePath(name).stem, collection)
            else:
                # Not splitlines(): only line feeds and carriage returns end a line of a log.
                read_source(name, iter(io.StringIO(text, newline="")), collection)
    return collection.statements if is_complete else None


def _no_statements() -> StudyError:
    return StudyError(
        "[application] does not specify any statements",
        slug="study-file-missing-key",
        found="no key statements",
        expected="files with its statements",
        to_do='statements = ["statements.csv", "server.csv"]',
    )


def _chosen(design: Design, load: PgbenchWorkload) -> list[str]:
    """Return the keys of a design or a load that an upgrade check cannot follow."""
    keys = {
        "metric": design.metric is not Metric.TPS and load.rate is None,
        "rate": load.rate is not None,
        "blocks": design.fixed_blocks is not None,
        "windows": design.rounds_are_given,
    }
    return [key for key, is_chosen in keys.items() if is_chosen]


def _other_design(chosen: Sequence[str]) -> StudyError:
    return StudyError(
        "an upgrade check compares throughput in blocks and windows of its own",
        slug="study-upgrade-design",
        found=" and ".join(chosen),
        expected="none of metric, rate, blocks and windows",
        to_do=f"remove {' and '.join(chosen)}; budget limits the time of the confirmation",
    )


def _other_factors(comparisons: int) -> StudyError:
    return StudyError(
        "an upgrade check compares servers only",
        slug="study-upgrade-factors",
        found=f"{comparisons} comparisons",
        expected="server as the only factor",
        to_do="remove the other factors, or write a study file for each of their levels",
    )
