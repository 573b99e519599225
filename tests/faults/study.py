"""The study that is struck: every phase of a run, each as short as it can be."""

from tests.live.conftest import CommandLine

SERVER = "17.8"
BLOCKS, WINDOWS = 3, 12
NAME = "struck"
_SERVERS = f'server = ["{SERVER}", "{SERVER}"]'
STUDY = f"""
title = "Struck by a fault"

[factors]
{_SERVERS}

[workload]
sql = "SELECT count(*) FROM t;"

[dataset]
sql = "DROP TABLE IF EXISTS t; CREATE TABLE t AS SELECT g AS id FROM generate_series(1, 1000) AS g;"

[design]
blocks = {BLOCKS}
windows = {WINDOWS}
window = "20ms"
"""  # noqa: S608 - our own words
RUN = ("run", f"{NAME}.toml", "--seed", "5", "--results", "results", "--lang", "en")
"""The command that is struck, and the one that resumes."""


def write_study(line: CommandLine) -> None:
    """Put the study where the command looks for it."""
    line.write(f"{NAME}.toml", STUDY)


def study_of_uri(uri: str) -> str:
    """The same on a running server, which is compared with itself under another setting."""
    levels = f'server = ["{uri}"]\ndefault_statistics_target = ["10", "1000"]'
    return 'compare = "default_statistics_target"\n' + STUDY.replace(_SERVERS, levels)
