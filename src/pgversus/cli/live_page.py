"""A page that shows a running study in a browser: its hosts, its verdicts so far, and the time left.

The page is a file without scripts, which the browser loads again every few seconds while the study runs.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pgversus.cli.progress_rows import Row, row_texts
from pgversus.errors import HostError
from pgversus.host.output_file import write_file
from pgversus.report.html import rendered_page
from pgversus.text.units import duration

_RELOAD_S = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLine:
    """What a host of a fleet does, and for how long it has."""

    name: str
    activity: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePage:
    """The page of one study."""

    path: Path
    title: str

    def write(
        self, activity: str, hosts: Sequence[HostLine], rows: Sequence[Row], times: Sequence[str], *, is_over: bool
    ) -> None:
        """Replace the page, in the current language. times: the progress of the study and the time left.

        Nothing happens if it cannot be written, since the study is worth more than its page.
        """
        page = rendered_page(
            "live.html",
            title=self.title,
            reload_s=None if is_over else _RELOAD_S,
            written=f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
            activity=activity,
            hosts=[(one.name, one.activity, duration(one.seconds)) for one in hosts],
            rows=[(row.name, row.verdict, *row_texts(row, is_final=is_over)[1:]) for row in rows],
            times=times,
            is_over=is_over,
        )
        with suppress(HostError):
            write_file(self.path, page)
