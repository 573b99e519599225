import io
from collections.abc import Sequence

import pytest

from pgversus.data.plain_dumps import commands_of
from pgversus.errors import DatasetError
from tests.bounded import processor_time

DUMP = rb"""--
-- PostgreSQL database dump
--

\restrict abc

SET transaction_timeout = 0;
SELECT pg_catalog.set_config('search_path', '', false);

CREATE FUNCTION public.f() RETURNS void LANGUAGE sql AS $_$
UPDATE public.t
SET total = (
    SELECT 1; -- not the end
)
$_$;

--
-- Name: t; Type: TABLE
--

CREATE TABLE public.t (
    id integer
);
COPY public.t (id) FROM stdin;
1; GRANT x TO nobody
it's
\.


SELECT pg_catalog.setval('public.t_id_seq', 1, true); ANALYZE public.t;
\unrestrict abc

"""


def read(text: bytes) -> list[tuple[int, bytes, list[bytes] | None]]:
    commands = commands_of(io.BytesIO(text), "app.sql")
    return [(one.line, one.text, None if one.rows is None else list(one.rows)) for one in commands]


def texts(text: bytes) -> Sequence[bytes]:
    return [one for _, one, _ in read(text)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_commands_and_rows_are_told_apart(end: bytes) -> None:
    found = read(DUMP.replace(b"\n", end))
    assert [line for line, _, _ in found] == [7, 8, 10, 21, 24, 30, 30]
    assert found[2][1].startswith(b"CREATE FUNCTION")
    assert found[2][1].endswith(b"$_$;")
    assert found[3][1].startswith(b"CREATE TABLE public.t (")
    assert found[4][1:] == (b"COPY public.t (id) FROM stdin;", [b"1; GRANT x TO nobody" + end, b"it's" + end])
    assert found[6][1] == b"ANALYZE public.t;"


@pytest.mark.parametrize(
    "command",
    [
        b"SELECT 'a;b', \"c;d\", E'it\\'s;', 'it''s;', $$;$$, $a$;$b$;$a$;",
        b"SELECT 1 /* ; /* ; */ ; */ + 1;",
        b"SELECT 1 -- ;\n+ 1;",
        b"CREATE RULE r AS ON INSERT TO t DO INSTEAD (UPDATE t SET a = 1;\n INSERT INTO u VALUES (1);\n);",
        b"CREATE FUNCTION f() RETURNS int\n BEGIN ATOMIC\n SELECT CASE WHEN a THEN 1 END FROM t;\n SELECT 2;\nEND;",
        b"CREATE OR REPLACE PROCEDURE p(a int DEFAULT (CASE WHEN true THEN 1 END)) BEGIN ATOMIC SELECT 1; END;",
        b"INSERT INTO t VALUES ('\nCOPY public.t (id) FROM stdin;\n\\.\n');",
        b"COMMENT ON TABLE t IS '\n-- a;\n';",
        b"SELECT 'end';",
        b"SELECT E'\\\\';",
    ],
)
def test_semicolons_inside_of_a_command_do_not_end_it(command: bytes) -> None:
    assert texts(command + b"\nSELECT 1;\n") == [command, b"SELECT 1;"]


def test_a_transaction_is_not_a_body() -> None:
    assert texts(b"BEGIN;\nSELECT CASE WHEN a THEN 1 END FROM t;\nCOMMIT;\n") == [
        b"BEGIN;",
        b"SELECT CASE WHEN a THEN 1 END FROM t;",
        b"COMMIT;",
    ]


def test_unread_rows_are_skipped() -> None:
    commands = commands_of(io.BytesIO(b"COPY t FROM stdin;\n1\n\\.\nSELECT 1;\n"), "app.sql")
    assert [one.text for one in commands] == [b"COPY t FROM stdin;", b"SELECT 1;"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (b"\\connect app\n", "connects to a different database"),
        (b"COPY t FROM stdin;\n1\n", "the dump is incomplete"),
        (b"SELECT 1;\nINSERT INTO t VALUES (1\n", "the dump is incomplete"),
        (b"SELECT '\n;\n", "the dump is incomplete"),
    ],
)
def test_a_dump_that_is_not_one_complete_database_is_an_error(text: bytes, what: str) -> None:
    with pytest.raises(DatasetError, match=what):
        read(text)


def test_a_long_command_is_read_in_linear_time() -> None:
    command = b"INSERT INTO t VALUES ('" + b"a;\n" * 300_000 + b"');"
    with processor_time():
        assert texts(command + b"\n") == [command]
