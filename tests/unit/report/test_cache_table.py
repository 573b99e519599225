from pgversus.records.inventory import CachedKind, CachedThing
from pgversus.report.inventory import cache_document, cache_table

THINGS = (
    CachedThing(
        kind=CachedKind.BUILD, name="zonky-17.8", size_bytes=52_000_000, last_used=1_000_000.0, what="PostgreSQL 17.8"
    ),
    CachedThing(
        kind=CachedKind.SNAPSHOT, name="0a1b", size_bytes=740_000_000, last_used=1_259_100.0, what="scale\x1b[31m 50"
    ),
)


def test_the_table_has_a_line_per_entry_and_totals() -> None:
    assert cache_table(THINGS, "/var/cache/pgversus", 1_259_200.0).splitlines() == [
        "/var/cache/pgversus",
        "kind      name        size    last used       what",
        "build     zonky-17.8  52 MB   3 days ago      PostgreSQL 17.8",
        "snapshot  0a1b        740 MB  1 min 40 s ago  scale\\x1b[31m 50",
        "1 build, 52 MB; 0 sources, 0 bytes; 1 snapshot, 740 MB",
    ]


def test_an_entry_with_a_last_use_in_the_future_is_shown_as_used_now() -> None:
    assert "  0 s ago  " in cache_table(THINGS, "/c", 1_259_000.0)


def test_an_empty_cache_is_shown_in_two_lines() -> None:
    assert cache_table((), "/c", 0.0) == "/c\n0 builds, 0 bytes; 0 sources, 0 bytes; 0 snapshots, 0 bytes\n"


def test_the_document_uses_base_units() -> None:
    assert cache_document(THINGS[:1], "/c") == {
        "schema": "pgversus.cache/1",
        "directory": "/c",
        "things": [
            {
                "kind": "build",
                "name": "zonky-17.8",
                "size_bytes": 52_000_000,
                "last_used": 1_000_000.0,
                "what": "PostgreSQL 17.8",
            }
        ],
    }
