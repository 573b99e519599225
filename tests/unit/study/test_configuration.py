"""A postgresql.conf of the user's own server."""

import pytest

from pgversus.errors import StudyError
from pgversus.study.configuration import read_configuration

FILE = """\
# - Memory -
shared_buffers = 128MB\t\t\t# min 128kB
work_mem '4MB'
Random_Page_Cost=1.1
effective_io_concurrency   200 # a comment
search_path = 'app, "$user"'
#jit = off
log_min_duration_statement = 0
listen_addresses = '*'
archive_command = 'cp %p /backup/''%f'' # no comment'
pg_stat_statements.max = 10000
shared_preload_libraries = 'pg_stat_statements'
work_mem = 8MB
datestyle = 'iso, \\'mdy'
"""


def test_the_settings_that_affect_speed_are_carried_over() -> None:
    found = read_configuration(FILE, "postgresql.conf")
    assert {one.name: one.value for one in found.settings} == {
        "shared_buffers": "128MB",
        "work_mem": "8MB",
        "random_page_cost": "1.1",
        "effective_io_concurrency": "200",
        "search_path": 'app, "$user"',
        "datestyle": "iso, 'mdy",
    }
    assert found.left_out == (
        "log_min_duration_statement",
        "listen_addresses",
        "archive_command",
        "pg_stat_statements.max",
        "shared_preload_libraries",
    )


@pytest.mark.parametrize("line", ["work_mem", "work_mem = 4MB 8MB", "= 4MB", "work_mem = 'open", "include 'b'"])
def test_an_invalid_line_is_refused_with_its_number(line: str) -> None:
    with pytest.raises(StudyError) as caught:
        read_configuration(f"jit = off\n{line}\n", "postgresql.conf")
    assert (caught.value.slug, caught.value.where) == ("study-bad-configuration", "postgresql.conf, line 2")


def test_a_directory_without_settings_may_be_included() -> None:
    text = "include_dir = 'conf.d'\ninclude_if_exists 'local.conf'\njit = off\n"
    found = read_configuration(text, "postgresql.conf", lambda _: False)
    assert [one.name for one in found.settings] == ["jit"]
    for place in ("conf.d", "local.conf"):
        with pytest.raises(StudyError) as caught:
            read_configuration(text, "postgresql.conf", place.__eq__)
        assert place in caught.value.found


def test_escapes_are_read_as_by_the_server() -> None:
    found = read_configuration("a_setting = 'a\\tb\\101\\\\'\n# a\x0cb\n", "postgresql.conf")
    assert [one.value for one in found.settings] == ["a\tbA\\"]


@pytest.mark.parametrize("line", ["work_mem 4MB extra", "work_mem = 4MB extra"])
def test_a_refused_line_is_shown(line: str) -> None:
    with pytest.raises(StudyError) as caught:
        read_configuration(f"{line}\n", "postgresql.conf")
    assert caught.value.found == line
