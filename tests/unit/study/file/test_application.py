"""Study files with the statements of an application."""

import pytest

from pgversus.errors import StudyFileError
from pgversus.study.application import PLANNING
from pgversus.study.dataset import Statistics
from pgversus.study.file.read import read_study
from pgversus.study.study import Study, StudyKind
from pgversus.study.workload import PgbenchWorkload, PreparedStatement
from tests.unit.study.file.reading import find_dump

FILE = """\
title = "A shop"
[factors]
server = ["15", "18"]
[settings]
work_mem = "8MB"
[application]
statements = ["counters.csv", "more.sql"]
[dataset]
sql = "CREATE TABLE t (a int);"
[load]
protocol = "prepared"
[design]
budget = "2m"
"""
CONTENTS = {
    "counters.csv": "query,calls,total_exec_time\nSELECT count(*) FROM t,10,4000\nCOMMIT,10,1000\n",
    "more.sql": "-- name: by value\n-- values: $1 = '7'\nSELECT * FROM t WHERE a = $1;\n",
    "server.log": "[4711] LOG:  duration: 1.5 ms  statement: SELECT a FROM t WHERE b = '\u2028'\n",
    "empty.csv": "",
}


def study(text: str, *, unread: str = "") -> Study:
    def read(path: str) -> tuple[str, bytes | None]:
        return f"/studies/{path}", None if path == unread else CONTENTS[path].encode()

    return read_study(text, name="shop.toml", read=read, find_dump=find_dump, seed=7)


def problem(text: str) -> str:
    with pytest.raises(StudyFileError) as caught:
        study(text)
    (one,) = caught.value.problems
    return one.slug


def test_each_statement_is_a_comparison() -> None:
    found = study(FILE)
    assert found.kind is StudyKind.UPGRADE_CHECK
    assert [one.name for one in found.statements] == ["1-t", "2", "by value", PLANNING]
    assert [one.context for one in found.statements] == [1, None, 2, 3]
    comparison = found.contexts[1].comparison
    assert [arm.label for arm in comparison.arms] == ["15", "18"]
    assert [str(setting) for setting in comparison.arms[0].settings] == ["work_mem=8MB"]
    assert isinstance(comparison.workload, PgbenchWorkload)
    (script,) = comparison.workload.scripts
    assert script.prepared == PreparedStatement(text="SELECT * FROM t WHERE a = $1", values=("7",))
    assert found.budget_s == 120.0


def test_targets_are_also_checked_without_statistics() -> None:
    found = study(FILE.replace("[dataset]", 'statistics = ["none"]\n[dataset]')).contexts[0].comparison
    assert [arm.label for arm in found.arms] == ["15", "18", "18 without statistics"]
    assert [arm.dataset.statistics for arm in found.arms] == [Statistics.ALL, Statistics.ALL, Statistics.NONE]
    assert found.factors == ("server", "statistics")


def test_other_line_separators_do_not_end_a_line_of_a_log() -> None:
    found = study(FILE.replace('"counters.csv"', '"server.log"')).statements
    assert "SELECT a FROM t WHERE b = '\u2028'" in [one.text for one in found]


def test_a_study_with_an_unread_file_has_no_statements() -> None:
    assert study(FILE, unread="counters.csv").statements == ()


@pytest.mark.parametrize(
    ("old", "new", "slug"),
    [
        ('statements = ["counters.csv", "more.sql"]', "", "study-file-missing-key"),
        ('"more.sql"', '"empty.csv"', "statements-unknown-form"),
        ("[dataset]", '[workload]\nsql = "SELECT 1;"\n[dataset]', "study-file-conflict"),
        ('work_mem = "8MB"', "", ""),
        ('server = ["15", "18"]', 'server = ["15", "18"]\nwork_mem = ["4MB", "8MB"]', "study-upgrade-factors"),
        ('protocol = "prepared"', "rate = 100", "study-upgrade-design"),
        ("[design]", '[design]\nmetric = "latency_mean"', "study-upgrade-design"),
        ('budget = "2m"', "blocks = 20", "study-upgrade-design"),
        ("[design]", "[design]\nwindows = 16", "study-upgrade-design"),
        ("[dataset]", 'coverage = "0%"\n[dataset]', "study-bad-coverage"),
        ('[dataset]\nsql = "CREATE TABLE t (a int);"', "", "study-no-tables"),
    ],
)
def test_an_invalid_application_is_rejected(old: str, new: str, slug: str) -> None:
    assert old in FILE
    changed = FILE.replace(old, new)
    if slug:
        assert problem(changed) == slug
    else:
        assert study(changed).kind is StudyKind.UPGRADE_CHECK
