"""Settings and locale of a dumped database, as pg_restore --create writes them."""

import pytest

from pgversus.data.dumped_database import DumpedDatabase, cluster_locale, database_in, installed_locales

OLD = """
CREATE DATABASE app WITH TEMPLATE = template0 ENCODING = 'UTF8' LC_COLLATE = 'de_DE.UTF-8' LC_CTYPE = 'en_US.UTF-8';
ALTER DATABASE app OWNER TO somebody;
ALTER DATABASE app SET search_path TO 'app', 'public';
ALTER DATABASE app SET work_mem TO '64MB';
"""
NEW = """
CREATE DATABASE "my app" WITH TEMPLATE = template0 ENCODING = 'UTF8' LOCALE_PROVIDER = libc LOCALE = 'en_US.UTF-8';
"""
ICU = """
CREATE DATABASE app WITH TEMPLATE = template0 ENCODING = 'UTF8' LOCALE_PROVIDER = icu LOCALE = 'C' ICU_LOCALE = 'en-US';
"""
BUILTIN = """
CREATE DATABASE app WITH TEMPLATE = template0 LOCALE_PROVIDER = builtin LOCALE = 'C' BUILTIN_LOCALE = 'C.UTF-8';
"""
US = DumpedDatabase(collation="en_US.UTF-8", character_type="en_US.UTF-8")
INSTALLED = frozenset({"C.", "POSIX.", "en_US.utf8", "de_DE.", "C.utf8"})


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        (
            OLD,
            DumpedDatabase(
                settings=("search_path TO 'app', 'public'", "work_mem TO '64MB'"),
                collation="de_DE.UTF-8",
                character_type="en_US.UTF-8",
            ),
        ),
        (NEW, US),
        (ICU, DumpedDatabase(other_provider="icu en-US")),
        # A function of the application is not a command for the database.
        (f"{NEW}CREATE FUNCTION f() AS $$\nALTER DATABASE app SET jit TO 'off';\n$$;\n", US),
        (BUILTIN, DumpedDatabase(other_provider="builtin C.UTF-8")),
        (ICU.replace("'en-US'", "'en-US' ICU_RULES = '& a;\n< g'"), DumpedDatabase(other_provider="icu en-US")),
        ("", DumpedDatabase()),
    ],
)
def test_the_commands_that_create_a_database_are_read(schema: str, found: DumpedDatabase) -> None:
    assert database_in(schema) == found


@pytest.mark.parametrize(
    ("database", "options", "missing"),
    [
        (DumpedDatabase(), (), None),
        (
            DumpedDatabase(collation="en_US.UTF-8", character_type="C"),
            ("--lc-collate=en_US.UTF-8", "--lc-ctype=C"),
            None,
        ),
        (
            DumpedDatabase(collation="C.utf8", character_type="C.utf8"),
            ("--lc-collate=C.utf8", "--lc-ctype=C.utf8"),
            None,
        ),
        (DumpedDatabase(collation="fr_FR.utf8", character_type="C"), (), "fr_FR.utf8"),
        # It is installed with another encoding.
        (DumpedDatabase(collation="de_DE", character_type="de_DE"), (), "de_DE"),
        (DumpedDatabase(collation="C", character_type="fr_FR.utf8"), (), "fr_FR.utf8"),
        (DumpedDatabase(other_provider="icu en-US"), (), "icu en-US"),
    ],
)
def test_a_locale_is_used_if_it_is_installed(
    database: DumpedDatabase, options: tuple[str, ...], missing: str | None
) -> None:
    found = cluster_locale(database, INSTALLED)
    assert found.options == options
    assert (None if found.problem is None else found.problem.message) == missing


def test_the_usual_locales_are_always_installed() -> None:
    assert {"C.", "POSIX."} <= installed_locales()


def test_an_unclosed_text_is_read_in_linear_time() -> None:
    assert database_in("ALTER DATABASE a SET b TO " + "''" * 5000 + "\n").settings == ()


def test_locales_with_a_modifier_are_usable() -> None:
    database = DumpedDatabase(collation="sr_RS.UTF-8@latin", character_type="sr_RS.UTF-8@latin")
    found = cluster_locale(database, frozenset({"sr_RS.utf8@latin"}))
    assert found.problem is None
    assert found.options == ("--lc-collate=sr_RS.UTF-8@latin", "--lc-ctype=sr_RS.UTF-8@latin")
