import pytest

from pgversus.statements.collection import Collection
from pgversus.statements.statement import RecordedStatement, Sample


def only(collection: Collection) -> RecordedStatement:
    (statement,) = collection.statements
    return statement


def test_executions_that_differ_in_constants_are_one_statement() -> None:
    collection = Collection()
    for number, seconds in enumerate([0.003, 0.001, 0.002]):
        text = f"SELECT * FROM t WHERE a = {number}"  # noqa: S608 - not executed
        collection.add_execution(Sample(text=text, seconds=seconds), has_values=True)
    found = only(collection)
    assert found.calls == 3
    assert found.seconds == pytest.approx(0.006)
    assert [sample.seconds for sample in found.samples] == [0.001, 0.002, 0.003]
    assert found.obstacle == ""


def test_counters_replace_the_times_of_logs_in_either_order() -> None:
    text, logged = "SELECT * FROM t WHERE a = $1", Sample(text="SELECT * FROM t WHERE a = 7", seconds=0.5)
    for counters_first in (True, False):
        collection = Collection()
        if counters_first:
            collection.add_counters(text, calls=100, seconds=2.0, rows=100)
        collection.add_execution(logged, has_values=True)
        if not counters_first:
            collection.add_counters(text, calls=100, seconds=2.0, rows=100)
        # Two users of one statement have a row each.
        collection.add_counters(text, calls=10, seconds=1.0, rows=5)
        found = only(collection)
        assert (found.text, found.calls, found.seconds, found.rows) == (text, 110, 3.0, 105)
        assert found.mean_s == pytest.approx(3 / 110)
        assert found.samples == (logged,)


def test_the_text_is_that_of_the_row_with_the_most_time() -> None:
    collection = Collection()
    for values, seconds in (("$1", 1.0), ("$1, $2, $3", 9.0), ("$1, $2", 2.0)):
        text = f"SELECT * FROM t WHERE a IN ({values})"  # noqa: S608 - not executed
        collection.add_counters(text, calls=1, seconds=seconds, rows=1)
    assert only(collection).text == "SELECT * FROM t WHERE a IN ($1, $2, $3)"


def test_a_list_of_unknown_length_and_its_executions_are_one_statement() -> None:
    collection = Collection()
    collection.add_counters("SELECT FROM t WHERE a IN ($1 /*, ... */)", calls=9, seconds=1.0, rows=9)
    collection.add_execution(Sample(text="SELECT FROM t WHERE a IN (1, 2)", seconds=0.1), has_values=True)
    (found,) = collection.statements
    assert (found.parameters, found.samples[0].text) == (10, "SELECT FROM t WHERE a IN (1, 2)")


def test_the_typical_execution_is_nearest_to_the_mean_of_the_counters() -> None:
    collection = Collection()
    for seconds in (0.1, 0.5, 2.0):
        collection.add_execution(Sample(text="SELECT $1", values=(str(seconds),), seconds=seconds), has_values=True)
    assert only(collection).typical == only(collection).samples[1]
    # A log of slow executions only.
    collection.add_counters("SELECT $1", calls=1000, seconds=1.0, rows=1000)
    assert only(collection).typical == only(collection).samples[0]
    assert Collection().statements == []


def test_a_fast_a_median_and_a_slow_one_of_many_executions_are_kept() -> None:
    collection = Collection()
    for number in range(10_000):
        seconds = (number * 7919 % 10_000) / 1e6
        collection.add_execution(Sample(text="SELECT $1", values=(str(number),), seconds=seconds), has_values=True)
    fast, median, slow = (sample.seconds or 0.0 for sample in only(collection).samples)
    assert fast < 0.0005
    assert median == pytest.approx(0.005, abs=0.0015)
    assert slow > 0.0095


@pytest.mark.parametrize(
    ("text", "obstacle"),
    [
        ("SELECT * FROM t WHERE a = $1", "no values for its parameters"),
        ("SELECT * FROM t", ""),
        ("COMMIT", "not a SELECT, INSERT, UPDATE, DELETE or MERGE"),
        ("SELECT 1; DROP TABLE t", "not a single SQL statement that the parser recognizes"),
    ],
)
def test_counters_alone_show_whether_a_statement_can_be_executed(text: str, obstacle: str) -> None:
    collection = Collection()
    collection.add_counters(text, calls=1, seconds=1.0, rows=None)
    assert only(collection).obstacle == obstacle


def test_an_execution_with_too_few_values_is_counted_but_is_not_a_sample() -> None:
    collection = Collection()
    collection.add_execution(Sample(text="SELECT $1, $2", values=("1",), seconds=1.0), has_values=True)
    collection.add_execution(Sample(text="SELECT $1, $2", seconds=1.0), has_values=False)
    assert (only(collection).calls, only(collection).samples) == (2, ())


def test_statements_come_in_the_order_of_their_times() -> None:
    collection = Collection()
    for table, seconds in (("a", 1.0), ("b", 3.0), ("c", 2.0)):
        collection.add_counters(f"TABLE {table}", calls=1, seconds=seconds, rows=None)
    assert [one.text[-1] for one in collection.statements] == ["b", "c", "a"]
