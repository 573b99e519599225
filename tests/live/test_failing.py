"""Impossible comparisons end with a clear error and the right exit code, and leave nothing behind."""

import os
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest

from tests.live.conftest import QUICK, WHOLE_SECONDS, CommandLine


def test_failing_sql_is_reported_with_pgbenchs_message(command_line: CommandLine) -> None:
    script = command_line.write("bad.sql", "SELECT * FROM nowhere;\n")
    ended = command_line.compare("17.8", "17.8", "-f", script, *QUICK)
    assert ended.code == 4
    assert "error[workload-failed]" in ended.stderr
    assert 'relation "nowhere" does not exist' in ended.stderr
    assert ended.stdout == ""
    assert not (command_line.directory / "results").exists()


def test_sql_that_fails_on_one_arm_names_that_arm(command_line: CommandLine) -> None:
    script = command_line.write("new.sql", "SELECT any_value(x) FROM generate_series(1, 3) AS x;\n")
    ended = command_line.compare("15.14", "16.10", "-f", script, *QUICK)
    assert ended.code == 4
    assert "on 15.14" in ended.stderr
    assert "function any_value(integer) does not exist" in ended.stderr


def test_sql_that_fails_on_one_of_several_contenders_is_measured_on_the_others(command_line: CommandLine) -> None:
    script = command_line.write("new.sql", "SELECT any_value(x) FROM generate_series(1, 3) AS x;\n")
    ended = command_line.compare("16.10", "15.14", "17.8", "-f", script, "--check-rows", *QUICK)
    assert ended.code == 4, ended.stderr
    document = ended.comparison
    failing, measured = document["verdicts"]
    assert (failing["verdict"], failing["ratio"]) == ("invalid", None)
    assert measured["ratio"] > 0
    assert any("function any_value(integer) does not exist" in caveat["text"] for caveat in document["caveats"])
    (compared,) = document["plans"]["comparisons"]
    assert compared["same_rows"] is True


def test_sql_that_fails_later_yields_failed_trials_and_no_number(command_line: CommandLine) -> None:
    # The pilot uses some 10 values of the sequence and a block would use 80; every block starts with a new one.
    setup = command_line.write("setup.sql", "CREATE SEQUENCE s MAXVALUE 45;")
    script = command_line.write("until.sql", "SELECT nextval('s'), pg_sleep(0.1);\n")
    ended = command_line.compare("17.8", "17.8", "--setup", setup, "-f", script, "--blocks", "2", "--window", "1")
    assert ended.code == 4
    document = ended.comparison
    assert document["verdicts"][0]["verdict"] == "invalid"
    assert document["verdicts"][0]["ratio"] is None
    assert document["failed_trials"] >= 3
    assert any("reached maximum value of sequence" in caveat["text"] for caveat in document["caveats"])


SET_AT_LOGIN = """
CREATE FUNCTION set_at_login() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN SET work_mem = '8MB'; END $$;
CREATE EVENT TRIGGER at_login ON login EXECUTE FUNCTION set_at_login();
"""


@pytest.mark.parametrize(
    ("setup", "script", "by"),
    [
        ("ALTER DATABASE postgres SET work_mem = '8MB';", "SELECT 1;", "set by ALTER DATABASE ... SET"),
        ("ALTER ROLE CURRENT_USER SET work_mem = '8MB';", "SELECT 1;", "set by ALTER ROLE ... SET"),
        ("ALTER ROLE ALL SET work_mem = '8MB';", "SELECT 1;", "set by ALTER ROLE ALL SET"),
        (SET_AT_LOGIN, "SELECT 1;", "set by SET in an event trigger of logins"),
        ("SELECT 1;", "SET work_mem = '8MB';\nSELECT 1;\nRESET work_mem;", "set by load.sql"),
        ("SELECT 1;", "SET work_mem = '8MB';\nVACUUM pg_class;", "set by load.sql"),
        ("SELECT 1;", "ALTER ROLE CURRENT_USER SET work_mem = '8MB';\nSELECT 1;", "set by load.sql"),
        ("SELECT 1;", "BEGIN;\nSELECT set_config('work_mem', '8MB', true);\nCOMMIT;", "set by load.sql"),
    ],
)
def test_a_compared_setting_that_is_overridden_is_refused(
    command_line: CommandLine, setup: str, script: str, by: str
) -> None:
    files = ("--setup", command_line.write("setup.sql", setup), "-f", command_line.write("load.sql", script))
    ended = command_line.compare("17.8", "--set", "work_mem=4MB,64MB", *files, *QUICK)
    assert ended.code == 4
    assert "error[workload-setting-overridden]" in ended.stderr
    assert f"8MB, {by}" in ended.stderr
    assert not (command_line.directory / "results").exists()


def test_settings_that_cannot_be_checked_during_a_script_are_a_caveat(command_line: CommandLine) -> None:
    # The check asks by DO statements.
    setup = command_line.write("setup.sql", "DROP EXTENSION plpgsql;")
    script = command_line.write("one.sql", "SELECT 1;")
    ended = command_line.compare("17.8", "--set", "work_mem=4MB,64MB", "--setup", setup, "-f", script, *QUICK)
    assert ended.code == 0, ended.stderr
    (text,) = [one["text"] for one in ended.comparison["caveats"] if one["slug"] == "settings-not-checked"]
    assert 'language "plpgsql" does not exist' in text


def test_a_missing_script_is_reported(command_line: CommandLine) -> None:
    ended = command_line.compare("17.8", "17.8", "-f", "no_such.sql")
    assert ended.code == 2
    assert "error[study-no-file]" in ended.stderr
    assert "no_such.sql" in ended.stderr


def test_a_failing_setup_file_is_reported_with_psqls_message(command_line: CommandLine) -> None:
    setup = command_line.write("setup.sql", "CREATE TABLE t (id int);\nINSERT INTO t VALUES ('one');\n")
    ended = command_line.compare("17.8", "17.8", "--setup", setup, "-S")
    assert ended.code == 2
    assert "error[dataset-load-failed]" in ended.stderr
    assert "setup.sql:2: ERROR:  invalid input syntax for type integer" in ended.stderr


def test_a_busy_host_is_reported_before_anything_is_loaded(command_line: CommandLine) -> None:
    program = "import time\nend = time.monotonic() + 60\nwhile time.monotonic() < end: pass"
    with ExitStack() as stack:
        for _ in range(os.cpu_count() or 1):
            busy = stack.enter_context(subprocess.Popen([sys.executable, "-c", program]))
            stack.callback(busy.kill)
        began = time.monotonic()
        ended = command_line.compare("17.8", "17.8", "--setup", command_line.write("setup.sql", "nonsense;"), "-S")
    assert time.monotonic() - began < 60
    reported, _, later = ended.stderr.partition("Press Ctrl-C to end the run")
    assert "this host is busy: other programs or guests use" in reported
    assert "error[dataset-load-failed]" in later


def test_an_unknown_version_is_answered_with_the_nearest_ones(command_line: CommandLine) -> None:
    ended = command_line.compare("17.3", "17.8", "-i", "-S")
    assert ended.code == 3
    assert "error[build-unknown-version]" in ended.stderr
    assert "17.2 and 17.4" in ended.stderr
    assert "to do:" in ended.stderr


def test_without_network_and_cache_the_error_says_what_to_do(command_line: CommandLine) -> None:
    for name in ("builds", "index", "staging"):
        (command_line.cache / name).unlink()
    # A proxy without a listener; the clients of all registries use it.
    nowhere = "http://127.0.0.1:9"
    ended = command_line.run(
        "compare", "17.8", "17.8", "-i", "-S", HTTPS_PROXY=nowhere, HTTP_PROXY=nowhere, PIP_RETRIES="0", PIP_TIMEOUT="2"
    )
    assert ended.code == 3
    assert "error[build-offline]" in ended.stderr
    assert "bin directory" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_unequal_data_is_rejected(command_line: CommandLine) -> None:
    # In a published study, a table was filled twice on one side and the arms were compared anyway.
    setup = command_line.write(
        "unequal.sql",
        "CREATE TABLE t_grp AS SELECT g AS id FROM generate_series(1, 100000) AS g;\n"
        "INSERT INTO t_grp SELECT * FROM t_grp WHERE current_setting('server_version_num')::int < 170000;\n"
        "CREATE TABLE t_random AS SELECT random() AS r FROM generate_series(1, 100);\n"
        # No name of a column hides other columns.
        "CREATE TABLE t_row AS SELECT 1 AS pgversus_row, random() AS x;\n",
    )
    ended = command_line.compare("16.12", "17.8", "--setup", setup, "-S", *QUICK)
    assert ended.code == 2
    assert "error[dataset-unequal]" in ended.stderr
    assert "public.t_grp: 200000 rows on 16.12, 100000 rows on 17.8" in ended.stderr
    assert "public.t_random: 100 rows on both, with different content" in ended.stderr
    assert "public.t_row: 1 rows on both, with different content" in ended.stderr


@pytest.mark.long
def test_many_clients_that_connect_slowly_are_waited_for(command_line: CommandLine) -> None:
    script = command_line.write("wait.sql", "SELECT pg_sleep(0.2);\n")
    ended = command_line.compare("17.8", "17.8", "-f", script, "-c", "80", *WHOLE_SECONDS)
    assert ended.code == 0, ended.stderr
    assert ended.comparison["arms"][0]["metrics"]["tps"]["value"] > 0


@pytest.mark.parametrize("setting", ["listen_addresses=*", "port=5433,5434", "data_directory=/tmp"])
def test_settings_for_location_and_access_are_reserved(command_line: CommandLine, setting: str) -> None:
    ended = command_line.compare("17.8", "17.8", "-i", "--set", setting, "-S")
    assert ended.code == 2
    assert "error[study-own-setting]" in ended.stderr


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("work_mem=4XB,1MB", "invalid value for parameter"),
        ("no_such_setting=1,2", "unrecognized configuration parameter"),
        ("work_mem=1kB,1MB", "outside the valid range"),
        ("work_mem=1MB,1024kB", "the server treats two levels of a setting as equal"),
    ],
)
def test_a_setting_rejected_by_the_server_is_reported_with_the_servers_message(
    command_line: CommandLine, setting: str, words: str
) -> None:
    ended = command_line.compare("17.8", "-i", "--set", setting, "-S", *QUICK)
    assert ended.code == 2
    assert words in ended.stderr
    assert "loading" not in ended.stderr


def test_a_setting_that_prevents_the_start_is_reported_with_the_servers_message(command_line: CommandLine) -> None:
    ended = command_line.compare("17.8", "17.8", "-i", "--set", "shared_preload_libraries=nothere", "-S", *QUICK)
    assert ended.code == 3
    assert "error[server-start]" in ended.stderr
    assert 'could not access file "nothere"' in ended.stderr


def test_a_directory_without_a_server_is_not_a_bin_directory(command_line: CommandLine) -> None:
    ended = command_line.compare("17.8", str(command_line.directory), "-i", "-S")
    assert ended.code == 3
    assert "error[build-not-a-bin-directory]" in ended.stderr
