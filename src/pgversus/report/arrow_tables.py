"""Tidy tables for Arrow: what data frames and Parquet are made from.

pyarrow weighs more than all of pgversus, so that it comes only to who asks for it: `pip install 'pgversus[arrow]'`.
"""

import io
from typing import TYPE_CHECKING, Any

from pgversus.errors import HostError
from pgversus.report.tidy import TidyTable

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_table(table: TidyTable) -> "pa.Table":
    """The table with a column of text, 64-bit integers or doubles for each name; null for no value.

    HostError without pyarrow.
    """
    arrow = _pyarrow()
    types = {str: arrow.string(), int: arrow.int64(), float: arrow.float64()}
    values = list(zip(*table.rows, strict=True)) or [()] * len(table.columns)
    made: pa.Table = arrow.table(
        {
            name: arrow.array(column, type=types[cell])
            for (name, cell), column in zip(table.types.items(), values, strict=True)
        }
    )
    return made


def parquet_bytes(table: TidyTable) -> bytes:
    """The table as a Parquet file; HostError without pyarrow."""
    content = arrow_table(table)
    from pyarrow import parquet  # noqa: PLC0415 - see above

    page = io.BytesIO()
    parquet.write_table(content, page)
    return page.getvalue()


def _pyarrow() -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415 - see above
    except ImportError as error:
        raise HostError(
            "Arrow tables need pyarrow, which is not installed",
            slug="host-no-pyarrow",
            where="Arrow, Parquet, pandas and polars",
            found=str(error),
            expected="the package pyarrow",
            to_do="pip install 'pgversus[arrow]'",
        ) from error
    return pa
