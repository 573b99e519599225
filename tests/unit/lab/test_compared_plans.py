"""Plans without a measurement are compared like those of a study."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from pgversus.engine.progress import Progress
from pgversus.lab import compared_plans as module
from pgversus.lab.compared_plans import compare_plans
from pgversus.plans.levels import PlanLevel
from pgversus.postgres.catalog import SettingValue
from pgversus.study.study import Context, Study
from tests.builders import comparison
from tests.unit.plans.captures import captured, plans_of
from tests.unit.plans.raw import scan

READS_4000 = captured(scan("t", Shared_Hit_Blocks=4000))
READS_1000 = captured(scan("t", Shared_Hit_Blocks=1000))


@pytest.mark.parametrize(
    ("sizes", "level"), [((8192, 32768), PlanLevel.IDENTICAL), ((8192, 8192), PlanLevel.WORK)], ids=["other", "same"]
)
def test_plans_on_blocks_of_different_sizes_are_compared_in_bytes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sizes: tuple[int, int], level: PlanLevel
) -> None:
    context = Context(number=1, levels=(), comparison=comparison(("17", "17+blocksize=32")))
    study = Study(name="s", title="t", question="q", contexts=(context,), seed=7, budget_s=600.0)

    @contextmanager
    def resources(*_: Any) -> Iterator[MagicMock]:
        made = MagicMock(study=study)
        made.cache.root = made.directory.root = tmp_path
        yield made

    def settings(server: MagicMock) -> dict[str, SettingValue]:
        return {"block_size": SettingValue(value=str(server.block_size), source="default", context="internal")}

    testbed, explainer = MagicMock(), MagicMock()
    testbed.return_value.servers_of.return_value.servers = [MagicMock(block_size=size) for size in sizes]
    explainer.return_value.explain.return_value = plans_of(READS_4000, READS_1000)
    fakes = {"open_resources": resources, "PostgresTestbed": testbed, "Explainer": explainer}
    for name, fake in {**fakes, "session_settings": settings}.items():
        monkeypatch.setattr(module, name, fake)
    (found,) = compare_plans(study, MagicMock(), MagicMock(), Progress()).compared
    assert found.difference.level is level
