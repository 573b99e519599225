import pytest

from pgversus.data.restoring import problems_of_archive, roles_in, table_in
from pgversus.records.preparation import RestoreProblem

ARCHIVE = """pg_restore: while INITIALIZING:
pg_restore: error: could not execute query: ERROR:  unrecognized configuration parameter "transaction_timeout"
Command was: SET transaction_timeout = 0;
pg_restore: while PROCESSING TOC:
pg_restore: from TOC entry 2; 3079 16399 EXTENSION postgis (no owner)
pg_restore: error: could not execute query: ERROR:  could not open extension control file
Command was: CREATE EXTENSION IF NOT EXISTS postgis WITH SCHEMA public;


pg_restore: from TOC entry 3354; 0 16390 TABLE DATA t app
pg_restore: error: COPY failed for table "t": ERROR:  relation "t" does not exist
pg_restore: from TOC entry 3360; 1259 16400 INDEX items_note app
pg_restore: error: could not execute query: ERROR:  operator class "gin_trgm_ops" does not exist
Command was: CREATE INDEX items_note ON public."Items" USING gin (note public.gin_trgm_ops);


pg_restore: from TOC entry 3361; 2606 16401 CONSTRAINT orders orders_no_overlap app
pg_restore: error: could not execute query: ERROR:  data type integer has no default operator class
DETAIL:  More.
Command was: ALTER TABLE ONLY public.orders
    ADD CONSTRAINT orders_no_overlap EXCLUDE USING gist (customer WITH =);


pg_restore: warning: errors ignored on restore: 5
"""


def test_ignored_errors_of_an_archive_are_read_with_their_objects() -> None:
    assert list(problems_of_archive(ARCHIVE)) == [
        RestoreProblem(
            item="settings", message='unrecognized configuration parameter "transaction_timeout"', is_setting=True
        ),
        RestoreProblem(item="EXTENSION postgis", message="could not open extension control file", is_setting=False),
        RestoreProblem(
            item="TABLE DATA t",
            message='COPY failed for table "t": ERROR:  relation "t" does not exist',
            is_setting=False,
            table="t",
        ),
        RestoreProblem(
            item="INDEX items_note",
            message='operator class "gin_trgm_ops" does not exist',
            is_setting=False,
            table="Items",
        ),
        RestoreProblem(
            item="CONSTRAINT orders orders_no_overlap",
            message="data type integer has no default operator class",
            is_setting=False,
            table="orders",
        ),
    ]


@pytest.mark.parametrize(
    ("command", "table"),
    [
        ("CREATE INDEX i ON public.t USING btree (a);\n", "t"),
        ('ALTER TABLE ONLY public."T"\n    ADD CONSTRAINT c UNIQUE (a);\n', "T"),
        ("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1';\n", ""),
    ],
)
def test_the_table_is_read_from_the_rejected_command(command: str, table: str) -> None:
    assert table_in(command) == table


@pytest.mark.parametrize(
    ("line", "roles"),
    [
        ("ALTER TABLE public.t OWNER TO app;\n", ["app"]),
        ('ALTER TABLE public.t OWNER TO "my-app";\n', ["my-app"]),
        ('GRANT SELECT ON TABLE public.t TO "a ""b""" WITH GRANT OPTION;\n', ['a "b"']),
        ("REVOKE ALL ON SCHEMA public FROM PUBLIC;\n", []),
        ("ALTER SCHEMA public OWNER TO pg_database_owner;\n", []),
        ('ALTER DEFAULT PRIVILEGES FOR ROLE a IN SCHEMA public GRANT SELECT ON TABLES TO "B";\n', ["B", "a"]),
        ("SELECT pg_catalog.set_config('search_path', '', false);\n", []),
    ],
)
def test_the_roles_of_a_plain_dump_are_found(line: str, roles: list[str]) -> None:
    assert list(roles_in(line)) == roles
