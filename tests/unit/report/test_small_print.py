import pytest

from pgversus.report.small_print import comparison_lines
from pgversus.study.workload import PgbenchWorkload, Script
from tests.builders import answer, comparison, open_loop

SELECT = Script(name="select-only")
FILE = Script(name="my query.sql", text="SELECT :scale")


@pytest.mark.parametrize(
    ("workload", "shown"),
    [
        (PgbenchWorkload(scripts=(SELECT,), scale=10), "-c 1 -j 1 -M simple -b select-only"),
        (PgbenchWorkload(scripts=(FILE,), scale=10), "-c 1 -j 1 -M simple -f 'my query.sql' -s 10"),
        (open_loop(), "-c 8 -j 2 -M prepared -f lag.sql@2 -b tpcb-like -D rows=1000 -R 50"),
        (
            PgbenchWorkload(scripts=(SELECT,), variables=(("a", "b c"),)),
            "-c 1 -j 1 -M simple -b select-only -D 'a=b c'",
        ),
    ],
)
def test_the_load_is_the_command_that_one_would_type(workload: PgbenchWorkload, shown: str) -> None:
    lines = comparison_lines(answer([], comparison(workload=workload)))
    assert lines[0] == f"pgbench -n -T 1 {shown} (pgbench 18.6)"
