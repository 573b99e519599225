"""Plans alone: servers are fetched, loaded, started, asked and stopped, without any load."""

from contextlib import ExitStack

from pgversus.engine.progress import Progress
from pgversus.host.identity import ServerUser
from pgversus.lab.explaining.comparing import compared
from pgversus.lab.explaining.explainer import Explainer
from pgversus.lab.failures import failures_of_the_host
from pgversus.lab.site import PostgresSite
from pgversus.lab.workshop import opened_workshop
from pgversus.postgres.client import Client
from pgversus.report.plans.compared import PlansAnswer
from pgversus.study.study import Study


def compare_plans(study: Study, user: ServerUser, client: Client, progress: Progress) -> PlansAnswer:
    """The plans of a comparison's workload on each arm, held against the baseline's; nothing is left behind.

    study: of one context. PgversusError of any kind when its servers cannot be had, loaded or asked.
    """
    with opened_workshop(study, user, progress) as workshop, ExitStack() as stack:
        site = PostgresSite(
            workshop.study,
            workshop.builds,
            workshop.directory,
            client=client,
            snapshots=workshop.snapshots(client, progress),
            common=workshop.common_settings,
            progress=progress,
            stack=stack,
            kept_logs=None,
        )
        (context,) = workshop.study.contexts
        with failures_of_the_host(workshop.cache.root):
            servers = site.servers_of(context).servers
            for server in servers:
                server.start()
            progress.say("asking every arm for its plans")
            explainer = Explainer(
                client=client, scratch=workshop.directory.root / "told", with_rows=True, progress=progress
            )
            plans = explainer.explain(servers, context.comparison)
    return compared([arm.label for arm in context.comparison.arms], plans)
