"""Hooks and fixtures of all tests: on CI a skipped test fails the run."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if os.environ.get("CI") and skipped and exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory open to all users, unlike those of pytest."""
    with tempfile.TemporaryDirectory(prefix="pgversus-test-", dir="/tmp") as name:
        directory = Path(name)
        directory.chmod(0o755)
        yield directory
