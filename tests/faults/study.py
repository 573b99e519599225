"""The study that is struck: every phase of a run, each as short as it can be."""

from tests.live.conftest import CommandLine

SERVER = "17.8"
BLOCKS, WINDOWS = 3, 12
NAME = "struck"
STUDY = f"""
title = "Struck by a fault"

[factors]
server = ["{SERVER}", "{SERVER}"]

[workload]
sql = "SELECT count(*) FROM t;"

[dataset]
sql = "CREATE TABLE t AS SELECT g AS id FROM generate_series(1, 1000) AS g;"

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
