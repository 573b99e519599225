"""The study that is struck: every phase of a run, each as short as possible."""

from random import Random

from tests.live.conftest import CommandLine

SERVER = "17.8"
BLOCKS, WINDOWS = 3, 12
NAME = "struck"
_SERVERS = f'server = ["{SERVER}", "{SERVER}"]'
# The statements mostly wait, so that several tries can share the processors.
_WORKLOAD = "[workload]\nsql = 'SELECT count(*), wait() FROM t;'"
_OTHER = "[workloads.other]\nsql = 'SELECT max(id), wait() FROM t;'"
_TWO = "\n".join([_WORKLOAD.replace("workload", "workloads.one"), _OTHER])
_TWO_SHARE = 0.3
STUDY = f'''
title = "Struck by a fault"

[factors]
{_SERVERS}

{_WORKLOAD}

[dataset]
sql = """
DROP TABLE IF EXISTS t;
CREATE TABLE t AS SELECT g AS id FROM generate_series(1, 1000) AS g;
CREATE OR REPLACE FUNCTION wait() RETURNS void LANGUAGE sql AS 'SELECT pg_sleep(0.001)';
"""

[design]
blocks = {BLOCKS}
windows = {WINDOWS}
window = "20ms"
'''  # noqa: S608 - constants
RUN = ("run", f"{NAME}.toml", "--seed", "5", "--results", "results", "--lang", "en")
"""The command that is struck, and that resumes when it is run again."""


def write_study(line: CommandLine, rng: Random) -> None:
    """Write the study file; sometimes with two contexts, which share servers."""
    text = STUDY.replace(_WORKLOAD, _TWO) if rng.random() < _TWO_SHARE else STUDY
    line.write(f"{NAME}.toml", text)


def study_of_uri(uri: str) -> str:
    """Return the study on an external server, compared with itself under a different setting."""
    levels = f'server = ["{uri}"]\ndefault_statistics_target = ["10", "1000"]'
    return 'compare = "default_statistics_target"\n' + STUDY.replace(_SERVERS, levels)
