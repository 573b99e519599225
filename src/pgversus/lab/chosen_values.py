"""Facts about statements of an application that need its data: values, what can be prepared, and what may write."""

from contextlib import ExitStack

from pgversus.data.snapshots import Snapshots
from pgversus.engine.progress import Progress
from pgversus.errors import DatasetError
from pgversus.lab.failures import failures_of_the_host
from pgversus.lab.resources import RunResources, StudyResources
from pgversus.lab.testbed import PostgresTestbed
from pgversus.postgres import catalog
from pgversus.postgres.client import Client
from pgversus.postgres.explain import functions_that_may_write
from pgversus.postgres.parameters import can_be_prepared, suggestion
from pgversus.postgres.session import Connection, connect
from pgversus.store.reading import StoredStudy
from pgversus.study.application import (
    prepared_texts,
    queries_in,
    stored_functions,
    stored_values,
    with_literals_in,
    with_queries_rolled_back,
    with_values,
)
from pgversus.study.comparison import BASELINE
from pgversus.study.study import Study
from pgversus.text.units import count


def with_known_values(study: Study, earlier: StoredStudy) -> Study:
    """Return the study with the values that were chosen when it began, and the same statements prepared."""
    prepared_before = prepared_texts(one.context for one in earlier.contexts)
    study = with_literals_in(study, prepared_texts(study.contexts).keys() - prepared_before.keys())
    if _texts(study):
        study = with_values(study, stored_values(earlier.study.statements))
    return with_queries_rolled_back(study, stored_functions(earlier.study.statements))


def with_chosen_values(
    resources: RunResources, client: Client, progress: Progress, *, is_new: bool
) -> tuple[Study, Snapshots | None]:
    """Return the study with values from the statistics of its baseline, and its data; leave nothing running.

    A statement that its server does not accept without the types of its parameters is not prepared. A query that calls
    a function that may write is rolled back. The data are None if the study needs nothing from them. is_new: whether
    the study has no earlier results, which record all this. Raises PgversusError if the data cannot be loaded, or if no
    statement can be executed.
    """
    study, texts = resources.study, _texts(resources.study)
    prepared = prepared_texts(study.contexts) if is_new else {}
    if not texts and not (is_new and study.statements):
        return study, None
    if texts:
        progress.say(f"choosing values for the parameters of {count(len(texts), 'statement')} from statistics")
    with ExitStack() as stack, failures_of_the_host(resources.cache.root):
        snapshots = resources.snapshots(client, progress)
        shared = StudyResources(resources=resources, client=client, snapshots=snapshots, progress=progress)
        server = PostgresTestbed(study, shared, stack).servers_of(study.contexts[0]).servers[BASELINE]
        server.start()
        with connect(server.load_target) as connection:
            if is_new and catalog.tables_are_empty(connection):
                raise _no_rows(server.arm.label)
            rejected = {label for label, text in prepared.items() if not can_be_prepared(connection, text)}
            study = with_literals_in(study, rejected)
            if texts:
                study = with_values(study, {text: suggestion(connection, text) for text in texts})
            if is_new:
                study = with_queries_rolled_back(study, _functions(connection, study))
            return study, snapshots


def _functions(connection: Connection, study: Study) -> dict[int, list[str]]:
    """Return the functions that may write, by number of the context whose query calls them."""
    found = {number: functions_that_may_write(connection, text) for number, text in queries_in(study).items()}
    return {number: functions for number, functions in found.items() if functions}


def _no_rows(label: str) -> DatasetError:
    return DatasetError(
        "the tables of the application are empty",
        slug="dataset-empty",
        where=label,
        found="a schema without rows",
        expected="the data of the application, because times on empty tables mean nothing",
        to_do="restore a dump with data; to compare plans alone: pgversus plans ... --statements SOURCE",
    )


def _texts(study: Study) -> list[str]:
    return [one.text for one in study.statements if one.needs_values]
