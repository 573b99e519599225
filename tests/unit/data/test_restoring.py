import pytest

from pgversus.data.restoring import _problems, _roles_in
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
PLAIN = """psql:/tmp/app.sql:12: ERROR:  unrecognized configuration parameter "transaction_timeout"
psql:<stdin>:40: ERROR:  type "geometry" does not exist
LINE 3:     place geometry
psql:/tmp/app.sql:51: NOTICE:  identifier will be truncated
"""


def test_ignored_errors_of_an_archive_are_read_with_their_objects() -> None:
    assert list(_problems(ARCHIVE)) == [
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


def test_errors_of_a_plain_dump_are_read_with_their_lines() -> None:
    assert [(one.item, one.is_setting) for one in _problems(PLAIN)] == [("line 12", True), ("line 40", False)]


@pytest.mark.parametrize(
    ("line", "roles"),
    [
        ("ALTER TABLE public.t OWNER TO app;\n", ["app"]),
        ('ALTER TABLE public.t OWNER TO "my-app";\n', ["my-app"]),
        ('GRANT SELECT ON TABLE public.t TO "a ""b""" WITH GRANT OPTION;\n', ['a "b"']),
        ("REVOKE ALL ON SCHEMA public FROM PUBLIC;\n", ["public"]),
        ("ALTER SCHEMA public OWNER TO pg_database_owner;\n", []),
        ('ALTER DEFAULT PRIVILEGES FOR ROLE a IN SCHEMA public GRANT SELECT ON TABLES TO "B";\n', ["B", "a"]),
        ("SELECT pg_catalog.set_config('search_path', '', false);\n", []),
    ],
)
def test_the_roles_of_a_plain_dump_are_found(line: str, roles: list[str]) -> None:
    assert list(_roles_in(line)) == roles
