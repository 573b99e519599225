"""Tidy tables as CSV; an empty field for no number."""

import csv
import io

from pgversus.report.tidy import TidyTable


def csv_text(table: TidyTable) -> str:
    """The table with a line of column names above it."""
    page = io.StringIO()
    writer = csv.DictWriter(page, table.columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(table.rows)
    return page.getvalue()
