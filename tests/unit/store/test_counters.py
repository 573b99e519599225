"""The view of counters can be queried by any SQLite, and shows the stored numbers exactly."""

import math
import sqlite3
import struct
from importlib import resources

from hypothesis import example, given
from hypothesis import strategies as st

from pgversus.stats.counters import Columns, CounterTable
from pgversus.store.counters import counter_rows, counters_blob

COUNTED = st.floats(min_value=1e-100, max_value=1e30)


def shown(counters: dict[str, float]) -> dict[str, float]:
    """Return what the view shows of one trial with these counters, the last of which it may lack."""
    database = sqlite3.connect(":memory:")
    database.executescript(resources.files("pgversus.store").joinpath("schema.sql").read_text(encoding="utf-8"))
    names = [*counters, "later"]
    database.executemany("INSERT INTO counter_name VALUES (?, ?)", enumerate(names))
    blob = counters_blob(counters, {name: place for place, name in enumerate(counters)})
    database.execute(
        "INSERT INTO trial (context, block, arm, status, transactions, counters) VALUES (1, 1, 0, 'finished', 1, ?)",
        (blob,),
    )
    found = dict(database.execute("SELECT name, value FROM counter WHERE (context, block, arm) = (1, 1, 0)"))
    database.close()
    return found


@given(COUNTED, COUNTED.map(lambda value: -value), st.integers(min_value=-(2**53), max_value=2**53).map(float))
@example(0.1, -1e-100, 0.0)
@example(1e30, -math.ulp(1.0), 1.0)
def test_the_view_of_counters_shows_each_number_exactly(first: float, second: float, third: float) -> None:
    counters = {"first": first, "second": second, "third": third}
    assert shown(counters) == counters


def test_a_bit_pattern_of_nan_that_arithmetic_rejects_means_not_reported() -> None:
    """A signalling NaN: sums over it would raise a warning, as in a damaged results file."""
    columns = Columns(("first", "second"))
    signalling = bytes.fromhex("7ff0000000000001")
    rows = counter_rows(columns, [struct.pack(">d", 1.0) + signalling, struct.pack(">2d", 2.0, 3.0)])
    table = CounterTable(columns, rows[0].table)
    assert (table.total("first"), table.total("second")) == (3.0, None)


def test_the_view_of_counters_omits_counters_that_were_not_reported() -> None:
    assert shown({"first": 3.0, "second": math.nan}) == {"first": 3.0}
