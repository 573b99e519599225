"""Values for statements whose values no source knows, chosen once from the statistics of the data."""

from contextlib import ExitStack

from pgversus.data.snapshots import Snapshots
from pgversus.engine.progress import Progress
from pgversus.lab.failures import failures_of_the_host
from pgversus.lab.resources import RunResources, StudyResources
from pgversus.lab.testbed import PostgresTestbed
from pgversus.postgres.client import Client
from pgversus.postgres.parameters import suggested_samples
from pgversus.postgres.session import connect
from pgversus.store.reading import StoredStudy
from pgversus.study.application import stored_values, with_values
from pgversus.study.comparison import BASELINE
from pgversus.study.study import Study
from pgversus.text.units import count


def with_known_values(study: Study, earlier: StoredStudy) -> Study:
    """Return the study with the values that were chosen when it began."""
    return with_values(study, stored_values(earlier.study.statements)) if _texts(study) else study


def with_chosen_values(resources: RunResources, client: Client, progress: Progress) -> tuple[Study, Snapshots | None]:
    """Return the study with values from the statistics of its baseline, and its data; leave nothing running.

    The data are None if every value is known. PgversusError if they cannot be loaded, or if no statement can be
    executed.
    """
    study, texts = resources.study, _texts(resources.study)
    if not texts:
        return study, None
    progress.say(f"choosing values for the parameters of {count(len(texts), 'statement')} from statistics")
    with ExitStack() as stack, failures_of_the_host(resources.cache.root):
        snapshots = resources.snapshots(client, progress)
        shared = StudyResources(resources=resources, client=client, snapshots=snapshots, progress=progress)
        server = PostgresTestbed(study, shared, stack).servers_of(study.contexts[0]).servers[BASELINE]
        server.start()
        with connect(server.target) as connection:
            return with_values(study, {text: suggested_samples(connection, text) for text in texts}), snapshots


def _texts(study: Study) -> list[str]:
    return [one.text for one in study.statements if one.needs_values]
