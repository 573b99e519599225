"""Progress and errors parsed from the output of a build."""

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.builds.compile import Steps, first_error

GCC = """
make -C ../../src/port all
gcc -Wall -Werror=vla -O2 -I../../src/include -c -o xlog.o xlog.c
xlog.c: In function 'StartupXLOG':
xlog.c:5012:9: error: 'nothing' undeclared (first use in this function)
 5012 |         nothing = 1;
      |         ^~~~~~~
xlog.c:5012:9: note: each undeclared identifier is reported only once
xlog.c:5020:1: error: another
make[2]: *** [<builtin>: xlog.o] Error 1
make: *** [Makefile:42: all] Error 2
"""
CONFIGURE = """
checking for gcc... gcc
checking for library containing readline... no
configure: error: library 'lz4' is required for LZ4 support
If you have LZ4 already installed, see config.log for details on the
"""
LINKER = """
gcc -O2 -o postgres access/brin.o -llz4
/usr/bin/ld: cannot find -llz4: No such file or directory
collect2: error: ld returned 1 exit status
make: *** [Makefile:67: postgres] Error 1
"""
UNDEFINED = """
/usr/bin/ld: main.o: in function `main':
main.c:(.text+0x5): undefined reference to `nothing'
collect2: error: ld returned 1 exit status
"""
FATAL = """
In file included from postgres.h:46,
                 from lz4.c:14:
lz4.c:16:10: fatal error: lz4.h: No such file or directory
   16 | #include <lz4.h>
      |          ^~~~~~~
compilation terminated.
"""
MAKE = """
make[1]: Entering directory '/s/build'
make[1]: *** No rule to make target 'nothing', needed by 'all'.  Stop.
make: *** [Makefile:2: all] Error 2
"""
NINJA = """
[1/900] Compiling C object src/port/one.o
[2/900] Generating src/include/nodes/nodetags with a custom command
FAILED: src/include/nodes/nodetags.h
/usr/bin/perl gen_node_support.pl
ninja: build stopped: subcommand failed.
"""
NINJA_GCC = """
[7/900] Compiling C object src/port/two.c.o
FAILED: src/port/two.c.o
gcc -Isrc/port -c ../tree/src/port/two.c
../tree/src/port/two.c:3:1: error: unknown type name 'itn'
    3 | itn two;
      | ^~~
ninja: build stopped: subcommand failed.
"""


@pytest.mark.parametrize(
    ("output", "error"),
    [
        (
            GCC,
            GCC[GCC.index("xlog.c:5012:9: error") : GCC.index("\nxlog.c:5012:9: note")],
        ),
        (CONFIGURE, "configure: error: library 'lz4' is required for LZ4 support"),
        (LINKER, "/usr/bin/ld: cannot find -llz4: No such file or directory"),
        (UNDEFINED, "main.c:(.text+0x5): undefined reference to `nothing'"),
        (
            FATAL,
            FATAL[FATAL.index("lz4.c:16:10") : FATAL.index("\ncompilation")],
        ),
        (MAKE, "make[1]: *** No rule to make target 'nothing', needed by 'all'.  Stop."),
        (NINJA, "FAILED: src/include/nodes/nodetags.h"),
        (
            NINJA_GCC,
            "../tree/src/port/two.c:3:1: error: unknown type name 'itn'\n    3 | itn two;\n      | ^~~",
        ),
        ("checking\n/bin/sh: 1: bison: not found\n\n", "/bin/sh: 1: bison: not found"),
        ("ERROR: This build of PostgreSQL needs Perl\nlast\n", "ERROR: This build of PostgreSQL needs Perl"),
        ("one\nKilled\n\n", "Killed"),
        ("", "no output"),
        ("\n \n", "no output"),
    ],
)
def test_the_first_error_is_the_root_cause(output: str, error: str) -> None:
    assert first_error(output.splitlines(keepends=True)) == error


def test_long_errors_are_truncated() -> None:
    assert first_error(["x.c:1: error: " + "x" * 5000, *["  1 | " + "y" * 500] * 20]).startswith("x.c:1: error: x")
    assert len(first_error(["x.c:1: error: " + "x" * 5000])) <= 1000
    assert len(first_error(["z" * 5000])) <= 1000
    assert first_error(["x.c:1: error: x", *["  1 | y"] * 20]).count("\n") < 6


@pytest.mark.parametrize(
    ("line", "is_step"),
    [
        ("gcc -Wall -O2 -I../src/include -c -o xlog.o xlog.c", True),
        ("gcc -fPIC -c -o a.o ../../src/a.c -MMD -MP", True),
        ("clang -O2 -c /s/tree/src/port/path.c -o path.o", True),
        ("/usr/bin/ccache gcc -O2 -c main.c", True),
        ("gcc -O2 -o postgres main.o", False),
        ("checking whether gcc accepts -c ... yes", False),
        ("make -C src/port all", False),
        ("[3/7] Linking target postgres", True),
        ("see [3/7]", False),
        ("", False),
    ],
)
def test_a_compiled_file_is_a_step(line: str, *, is_step: bool) -> None:
    steps = Steps(2)
    assert steps.take(f"{line}\n") is is_step
    assert (steps.done > 0) is is_step


def test_ninja_reports_its_own_steps() -> None:
    steps = Steps(500)
    for line in textwrap.dedent(NINJA).splitlines():
        steps.take(line)
    assert (steps.done, steps.total) == (2, 900)


def test_progress_of_make_is_relative_to_the_expected_files() -> None:
    steps = Steps(3)
    seen = []
    for _ in range(5):
        steps.take("gcc -c -o x.o x.c")
        seen.append((steps.done, steps.total))
    assert seen == [(1, 3), (2, 3), (3, 3), (4, 4), (5, 5)]


@given(
    st.integers(0, 5),
    st.lists(st.sampled_from(["gcc -c -o x.o x.c", "cc -c x.c", "x", "[1/4] a", "[2/4] b", "[4/4] c"]), max_size=12),
)
def test_the_total_is_never_less_than_the_steps_done(expected: int, lines: list[str]) -> None:
    steps = Steps(expected)
    for line in lines:
        before = steps.done
        if not steps.take(line):
            assert steps.done == before
        assert 0 <= steps.done <= steps.total
