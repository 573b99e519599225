"""All targets: every kind of external input."""

from tests.fuzz.archives import ARCHIVES
from tests.fuzz.cached import CACHED_FILES, VERSION_LISTS
from tests.fuzz.claims import CLAIMS
from tests.fuzz.command_lines import COMMAND_LINES
from tests.fuzz.pgbench import LOG, NOTICES, STATEMENTS, SUMMARY
from tests.fuzz.plans import PLANS
from tests.fuzz.registries import ANSWERS, METADATA
from tests.fuzz.results import RESULTS
from tests.fuzz.study_files import DRY_RUNS, STUDY_FILES
from tests.fuzz.target import Target
from tests.fuzz.texts import ACCESS, HIDDEN, QUANTITIES, SERVERS

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        STUDY_FILES,
        DRY_RUNS,
        PLANS,
        CLAIMS,
        SUMMARY,
        LOG,
        STATEMENTS,
        NOTICES,
        RESULTS,
        CACHED_FILES,
        VERSION_LISTS,
        ANSWERS,
        METADATA,
        COMMAND_LINES,
        ARCHIVES,
        HIDDEN,
        ACCESS,
        SERVERS,
        QUANTITIES,
    )
}
