"""Host access is found in every part of a study; ordinary studies have none."""

import pytest

from pgversus.study.host_access import HostAccess, host_access_of
from tests.bounded import processor_time
from tests.unit.study.file.reading import SHORT, study

URI = "postgresql://me:Geheim99@db.example/app"
OPERATION = 'title = "t"\n[factors]\nserver = ["16", "17"]\n[workload]\n'


def access(text: str, texts: dict[str, str] | None = None) -> HostAccess:
    return host_access_of(study(text), texts or {}, ())


def of_setup(sql: str) -> HostAccess:
    """Return the host access of a study with these statements for psql."""
    return access(f"{SHORT}[dataset]\nsetup = ['fill.sql']\n", {"/studies/fill.sql": sql})


def of_script(sql: str) -> HostAccess:
    """Return the host access of a study with these statements for pgbench."""
    return access(SHORT.replace('script = "query.sql"', f"sql = '''{sql}'''"))


def of_servers(*names: str) -> HostAccess:
    return access(SHORT.replace('"16.12", "17.8"', ", ".join(f"'{name}'" for name in names)))


def kinds(found: HostAccess) -> list[str]:
    return [line.partition(":")[0] for line in found.lines]


def test_servers_settings_and_sql_need_no_consent() -> None:
    found = access(f'{SHORT}variables = {{ rows = 10 }}\n[settings]\nwork_mem = "4MB"\n[dataset]\nscale = 1\n')
    assert (found, found.is_none, found.lines) == (HostAccess(), True, [])


def test_a_dump_is_listed_whatever_it_contains() -> None:
    found = access(f'{SHORT}[dataset]\nrestore = "data/app.dump"\n')
    assert found.lines == ["runs programs: any that the SQL in app.dump starts, which is not examined"]


@pytest.mark.parametrize(
    "name",
    [
        "zonky:17.8",
        "source:17",
        "17+blocksize=16",
        "17+cassert",
        "17+cc=clang-18",
        "17+cc=x86_64-linux-gnu-gcc-13",
        "17+cflags=-O3 -march=native -DLOCK_DEBUG=1 -fno-omit-frame-pointer -g -Wno-error",
        "17+with-lz4",
        "17+with-uuid=e2fs",
    ],
)
def test_releases_with_harmless_options_need_no_consent(name: str) -> None:
    assert of_servers("17", name).is_none


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("./bin", ["runs programs: the server in ./bin"]),
        (URI, ["connects to: postgresql://db.example/app"]),
        ("./tree@HEAD", ["builds: ./tree@HEAD"]),
        ("./postgresql-17.8.tar.bz2+cassert", ["builds: ./postgresql-17.8.tar.bz2+cassert"]),
        ("https://h/p-17.8.tar.gz", ["connects to: https://h/p-17.8.tar.gz", "builds: https://h/p-17.8.tar.gz"]),
        ("17+cc=./mine", ["runs programs: cc=./mine"]),
        ("17+cc=sh -c x", ["runs programs: cc=sh -c x"]),
        ("17+cc=halt", ["runs programs: cc=halt"]),
        ("17+cc=gcc -wrapper x", ["runs programs: cc=gcc -wrapper x"]),
        ("17+cflags=-O2 -fplugin=x", ["builds: 17+cflags=-O2 -fplugin=x"]),
        ("17+cflags=-O2 $(shell x)", ["builds: 17+cflags=-O2 $(shell x)"]),
        ("17+cflags=-B/x", ["builds: 17+cflags=-B/x"]),
        ("17+with-tclconfig=/x", ["builds: 17+with-tclconfig=/x"]),
    ],
)
def test_a_server_chosen_by_the_study_is_listed(name: str, expected: list[str]) -> None:
    assert of_servers("17", name).lines == expected


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("external_pid_file", "writes"),
        ("config_file", "reads"),
        ("data_directory", "reads"),
        ("hba_file", "reads"),
        ("ident_file", "reads"),
        ("listen_addresses", "connects to"),
        ("unix_socket_directories", "connects to"),
    ],
)
def test_a_location_that_no_study_may_set_is_listed_in_sql(name: str, kind: str) -> None:
    assert kinds(of_setup(f"ALTER SYSTEM SET {name} = '/x';")) == [kind]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("shared_preload_libraries", "programs"),
        ("Session_Preload_Libraries", "programs"),
        ("local_preload_libraries", "programs"),
        ("archive_command", "programs"),
        ("archive_library", "programs"),
        ("archive_cleanup_command", "programs"),
        ("restore_command", "programs"),
        ("recovery_end_command", "programs"),
        ("ssl_passphrase_command", "programs"),
        ("dynamic_library_path", "programs"),
        ("jit_provider", "programs"),
        ("extension_control_path", "programs"),
        ("primary_conninfo", "connections"),
        ("ssl_key_file", "reads"),
        ("log_directory", "writes"),
    ],
)
def test_a_setting_that_reaches_outside_is_listed_in_every_place(name: str, kind: str) -> None:
    for text in (
        f'{SHORT}[settings]\n{name} = "x"\n',
        f"{SHORT}settings = {{ {name} = 'x' }}\n",
        SHORT.replace("[workload]", f"{name} = ['x']\n[workload]"),
    ):
        (found,) = getattr(access(text), kind)
        assert found.startswith(f"{name} = ")
    assert kinds(of_setup(f"ALTER SYSTEM SET {name.lower()} = 'x';")) == kinds(
        access(f"{SHORT}settings = {{ {name} = 'x' }}")
    )


@pytest.mark.parametrize(
    "text",
    [
        "command = \"sh -c 'touch /x; date'\"",
        "steps = [{ sql = 'ANALYZE t' }, { command = \"sh -c 'touch /x; date'\" }]",
    ],
)
def test_a_program_is_listed_with_its_arguments(text: str) -> None:
    assert access(OPERATION + text).lines == ["runs programs: sh -c 'touch /x; date'"]


PROGRAMS_IN_SQL = [
    "COPY t FROM PROGRAM 'touch /x';",
    "copy (SELECT ';') to program $$touch /x$$;",
    "COPY t FROM/**/PROGRAM/* x */E'touch /x'",
    "COPY t FROM -- from where\n PROGRAM 'touch /x'",
    "COPY t FROM /* from */ -- from\n -- from\n PROGRAM 'touch /x'",
    f"COPY t FROM /* {'long ' * 200}*/ PROGRAM 'touch /x'",
    f"COPY t FROM --{' long' * 200}\n PROGRAM 'touch /x'",
    "COPY t FROM /* one /* inside */ */ PROGRAM 'touch /x'",
    "DO $$ BEGIN COPY t FROM PROGRAM 'x'; END $$;",
    "COPY t FROM PROGRAM :'program'",
    "LOAD 'auto_explain'",
    "LOAD/**/'/x/evil.so'",
    "CREATE FUNCTION f() RETURNS int AS '/x/evil', 'f' LANGUAGE C;",
    "create function f() returns int language 'c' as '/x/evil';",
    "CREATE FUNCTION f() RETURNS int AS '/x/evil' LANGUAGE $$c$$;",
    "CREATE FUNCTION f() RETURNS int AS '/x/evil' LANGUAGE E'c';",
    "SELECT pg_create_logical_replication_slot('s', '/x/evil')",
    "CREATE FUNCTION f() RETURNS int LANGUAGE plpython3u AS $$ import os $$;",
    "CREATE EXTENSION IF NOT EXISTS plperlu;",
    "SET session_preload_libraries = 'x';",
]
ELSEWHERE_IN_SQL = [
    ("SELECT * FROM dblink('host=h', 'SELECT 1') AS t(i int)", "connects to"),
    ("CREATE EXTENSION postgres_fdw", "connects to"),
    ("CREATE /* x */ SUBSCRIPTION s CONNECTION 'host=h' PUBLICATION p", "connects to"),
    ("COPY t FROM '/etc/passwd'", "reads"),
    ("COPY t FROM'/etc/passwd'", "reads"),
    ("COPY t FROM '../../../etc/passwd'", "reads"),
    (f"COPY t FROM '{'./' * 500}../etc/passwd'", "reads"),
    (r"COPY t FROM E'\x2fetc/passwd'", "reads"),
    (r"COPY t FROM U&'\002Fetc/passwd'", "reads"),
    ("SELECT pg_read_file('/etc/passwd')", "reads"),
    ("SELECT lo_import('/etc/passwd')", "reads"),
    ("CREATE EXTENSION file_fdw", "reads"),
    ("COPY t TO '/tmp/x'", "writes"),
    (r"COPY t TO e'\x2ftmp/x'", "writes"),
    ("CREATE TABLESPACE s LOCATION '/tmp/x'", "writes"),
    ("SELECT lo_export(1, '/tmp/x')", "writes"),
]


@pytest.mark.parametrize(("sql", "kind"), [*((sql, "runs programs") for sql in PROGRAMS_IN_SQL), *ELSEWHERE_IN_SQL])
def test_sql_that_reaches_outside_is_listed_in_every_place(sql: str, kind: str) -> None:
    assert kinds(of_setup(sql)) == [kind]
    assert kinds(of_script(sql)) == [kind]
    assert kinds(access(f"{SHORT}[dataset]\nsql = '''{sql}'''\n")) == [kind]
    for text in (
        f"operation = '''{sql}'''",
        f"steps = [{{ sql = '''{sql}''' }}]",
        f"operation = 'ANALYZE'\nverify = '''{sql}'''",
        f"operation = 'ANALYZE'\nprepare_sql = '''{sql}'''",
        f"operation = 'ANALYZE'\nprepare_sql = ':x'\nvariables = {{ x = '''{sql}''' }}",
    ):
        assert kinds(access(OPERATION + text)) == [kind]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (r"\! touch /x", "runs programs"),
        (r"SELECT 1 \! touch /x", "runs programs"),
        (r"SELECT '\' \! touch /x", "runs programs"),
        (r"\set x `touch /x`", "runs programs"),
        (r"\if `touch /x`", "runs programs"),
        (r"\echo a \\ \set x `touch /x`", "runs programs"),
        (r"\o |touch /x", "runs programs"),
        (r"SELECT 1 \g |touch /x", "runs programs"),
        (r"SELECT 1 \gx (format=csv) |touch /x", "runs programs"),
        (rf"SELECT 1 \g{' ' * 300}|touch /x", "runs programs"),
        (rf"SELECT 1 \g (fieldsep={'x' * 300}) |touch /x", "runs programs"),
        (r"\w |touch /x", "runs programs"),
        (r"\copy t from program 'touch /x'", "runs programs"),
        (r"\copy (select 'from stdin') to program 'touch /x'", "runs programs"),
        (r"\setenv PSQL_EDITOR /x", "runs programs"),
        (r"\c 'host=h'", "connects to"),
        (r"\connect - - h", "connects to"),
        (r"\i other.sql", "reads"),
        (r"\include_relative ../other.sql", "reads"),
        (r"\copy t from '/etc/passwd'", "reads"),
        (r"\getenv x PGPASSWORD", "reads"),
        (r"\lo_import /etc/passwd", "reads"),
        (r"\o /tmp/x", "writes"),
        (r"SELECT 1 \g /tmp/x", "writes"),
        (r"\lo_export 1 /tmp/x", "writes"),
    ],
)
def test_a_psql_command_that_reaches_outside_is_listed(line: str, kind: str) -> None:
    found = of_setup(f"SELECT 1;\n{line}\nSELECT 2;\n")
    assert kinds(found) == [kind]
    assert kinds(access(f"{OPERATION}operation = 'ANALYZE'\nprepare_sql = '''\n{line}\n'''")) == [kind]


@pytest.mark.parametrize(
    "line",
    [
        r"\shell touch /x",
        r"\setshell x touch /x",
        r"\SetShell x y",
        r" \ shell touch /x",
        rf"\{' ' * 300}shell touch /x",
        "\\\\\nshell touch /x",
        "\\ \\\n \\\nsetshell x touch /x",
    ],
)
def test_a_pgbench_command_that_runs_a_program_is_listed(line: str) -> None:
    assert kinds(of_script(f"SELECT 1;\n{line}\n")) == ["runs programs"]
    script = access(
        SHORT.replace('script = "query.sql"', f"scripts = [{{ sql = '''{line}''' }}, {{ sql = 'SELECT 1' }}]")
    )
    assert kinds(script) == ["runs programs"]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t (language text, program text, load int); -- load the rows from a program\n",
        "COPY t FROM stdin;\n1\t\\N\n\\.\nSELECT E'\\n', '\\d+', regexp_replace('a', '\\w+', '');\n",
        "\\copy t (a, b) from stdin\n1\t2\n\\.\n\\set rows 10\nSELECT :rows \\gset\nSELECT 1 \\g\nSELECT 1 \\gexec\n",
        "\\if :{?rows}\n\\echo rows\n\\endif\n\\timing on\n",
        "SELECT * FROM \"program\" WHERE a = 'from' -- `t` is a table\n",
        "CREATE EXTENSION pg_prewarm; CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;",
        "SET search_path TO 'a'; COPY t TO 'rows.csv'; COPY t FROM 'rows.csv'; COPY t FROM E'rows.csv';",
        "COPY t FROM stdin (DELIMITER E'\\t');\n1\t2\n\\.\n",
    ],
)
def test_ordinary_sql_needs_no_consent(sql: str) -> None:
    assert of_setup(sql) == HostAccess()


def test_the_list_has_one_line_per_kind_without_passwords() -> None:
    found = of_setup("\\! psql postgresql://u:Geheim99@h/db\nCOPY t FROM\n\n  PROGRAM 'date';\n")
    assert found.lines == ["runs programs: fill.sql: \\! psql postgresql://h/db; fill.sql: FROM PROGRAM 'date';"]
    assert of_setup(f"SELECT 1 \\g{' ' * 300}|date").lines == ["runs programs: fill.sql: \\g |date"]
    many = host_access_of(study(SHORT), {}, [f"/etc/{number}\nbuilds: nothing" for number in range(15)])
    (line,) = many.lines
    assert line.startswith("reads: /etc/0 builds: nothing; /etc/1 ")
    assert line.endswith("; and 3 more")


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        "from /*",
        "\\",
        "\\ ",
        "from ",
        "from /**/",
        "/*from*/",
        "--to\n",
        "--create\n",
        "load --",
        "--load\n",
        "language",
        "`\\",
        "to '",
        "\\copy t ",
        "$a$'",
        "from /*x*/ --",
        "\\g (",
        "\\\\\n",
        "to './",
    ],
)
def test_a_long_text_takes_linear_time(piece: str) -> None:
    # A quadratic search would take hours.
    with processor_time(20):
        of_setup(piece * (300_000 // len(piece)))
        of_script(piece.replace("'", "") * (300_000 // len(piece)))
