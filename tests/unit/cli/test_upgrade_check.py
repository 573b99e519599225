"""`pgversus upgrade-check`: the study that its options describe."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pgversus.cli import upgrade_check as module
from pgversus.cli.main import pgversus
from pgversus.errors import StudyError
from pgversus.study.settings import Setting
from pgversus.study.study import Study

SOURCES = ("--statements", "statements.sql", "--setup", "setup.sql")
CONFIGURATION = """
work_mem = 64MB
shared_buffers = 2GB
effective_io_concurrency = 1
port = 5433
archive_command = 'copy %p'
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("statements.sql").write_text("SELECT * FROM t WHERE a = 5;\nCOMMIT;\n")
    Path("setup.sql").write_text("CREATE TABLE t (a int);\n")
    Path("app.conf").write_text(CONFIGURATION)


def studied(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[Study, dict[str, Any]]:
    """Return the study that would be measured, and the options of its answer."""
    found: list[tuple[Study, dict[str, Any]]] = []

    def measure(study: Study, options: dict[str, Any], _results: Path, **_: object) -> int:
        found.append((study, options))
        return 0

    monkeypatch.setattr(module, "measure", measure)
    ended = CliRunner().invoke(pgversus, ["upgrade-check", *arguments, *SOURCES], standalone_mode=False)
    if ended.exception is not None:
        raise ended.exception
    return found[0]


def settings(study: Study) -> Sequence[tuple[Setting, ...]]:
    return [tuple(sorted(arm.settings, key=str)) for arm in study.contexts[0].comparison.arms]


def test_the_first_version_is_compared_with_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    study, _ = studied(monkeypatch, "16.12", "17.8", "18.0", "--seed", "3", "--budget", "2m", "--margin", "1%")
    comparison = study.contexts[0].comparison
    assert [arm.label for arm in comparison.arms] == ["16.12", "17.8", "18.0"]
    assert (study.seed, study.budget_s, comparison.design.margin) == (3, 120.0, 0.01)
    assert [(one.text, one.obstacle != "") for one in study.statements][:2] == [
        ("SELECT * FROM t WHERE a = 5", False),
        ("COMMIT", True),
    ]


def test_settings_on_the_command_line_take_precedence_over_a_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    study, _ = studied(monkeypatch, "16.12", "17.8", "--conf", "app.conf", "--set", "shared_buffers=1GB")
    expected = (
        Setting(name="effective_io_concurrency", value="1"),
        Setting(name="shared_buffers", value="1GB"),
        Setting(name="work_mem", value="64MB"),
    )
    assert settings(study) == [expected, expected]
    assert study.carried_settings == {"work_mem", "effective_io_concurrency"}
    (skipped,) = study.skipped
    assert skipped.label == "port, archive_command of app.conf"


def test_new_defaults_are_another_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    study, _ = studied(monkeypatch, "17.8", "18.0", "--conf", "app.conf", "--new-defaults")
    names = [{one.name for one in of_arm} for of_arm in settings(study)]
    assert ["effective_io_concurrency" in one for one in names] == [True, True, False]
    with pytest.raises(StudyError, match="requires --conf"):
        studied(monkeypatch, "17.8", "18.0", "--new-defaults")


def test_known_findings_are_read_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StudyError) as caught:
        studied(monkeypatch, "16.12", "17.8", "--known", "missing.json")
    assert "missing.json" in caught.value.where
    Path("other.json").write_text("{}")
    with pytest.raises(StudyError):
        studied(monkeypatch, "16.12", "17.8", "--known", "other.json")


def test_plans_are_not_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Exception, match="--sample-plans cannot be used with upgrade-check"):
        studied(monkeypatch, "16.12", "17.8", "--sample-plans")
