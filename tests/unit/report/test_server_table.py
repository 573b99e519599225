from pgversus.records.inventory import InstalledServer
from pgversus.report.inventory import aligned, servers_document, servers_table

BUILT = InstalledServer(
    name="source-0a1b",
    version="17.8",
    origin="source",
    block_size_bytes=16384,
    flags="-O2 -g",
    options="+blocksize=16",
    size_bytes=52_000_000,
    directory="/c/builds/source-0a1b",
    made_from="tree ./a\x1b[31m",
)
INSTALLED = InstalledServer(
    name="/usr/lib/postgresql/15/bin",
    version="15.2 (Debian)",
    origin="installed",
    block_size_bytes=None,
    flags="",
    options="",
    size_bytes=None,
    directory="/usr/lib/postgresql/15/bin",
    made_from="",
)


def test_the_table_has_a_line_per_server_with_control_characters_escaped() -> None:
    assert servers_table([BUILT, INSTALLED]).splitlines() == [
        "name                        version  origin     block size  options        flags   size   from",
        "source-0a1b                 17.8     source     16 kB       +blocksize=16  -O2 -g  52 MB  tree ./a\\x1b[31m",
        "/usr/lib/postgresql/15/bin  15.2     installed",
    ]


def test_an_empty_list_suggests_how_to_install_servers() -> None:
    (line,) = servers_table([]).splitlines()
    assert "pgversus servers install" in line


def test_the_document_uses_base_units_and_keeps_every_character() -> None:
    assert servers_document([BUILT, INSTALLED], "/c") == {
        "schema": "pgversus.servers/1",
        "cache": "/c",
        "servers": [
            {
                "name": "source-0a1b",
                "version": "17.8",
                "origin": "source",
                "block_size_bytes": 16384,
                "flags": "-O2 -g",
                "options": "+blocksize=16",
                "size_bytes": 52_000_000,
                "directory": "/c/builds/source-0a1b",
                "made_from": "tree ./a\x1b[31m",
            },
            {
                "name": "/usr/lib/postgresql/15/bin",
                "version": "15.2 (Debian)",
                "origin": "installed",
                "block_size_bytes": None,
                "flags": "",
                "options": "",
                "size_bytes": None,
                "directory": "/usr/lib/postgresql/15/bin",
                "made_from": "",
            },
        ],
    }


def test_columns_are_as_wide_as_their_widest_text_without_trailing_spaces() -> None:
    assert aligned([("a", "bb", "c"), ("long", "", "c"), ("", "b", "")]) == ["a     bb  c", "long      c", "      b"]
    assert aligned([("", "")]) == [""]
    assert aligned([]) == []
