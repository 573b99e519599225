import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pgversus.cli.main import pgversus
from pgversus.errors import StudyError

EXPORT = """queryid,query,calls,total_exec_time,rows
1,SELECT * FROM t WHERE a = $1,1000,5000,1000
2,SELECT count(*) FROM t,10,4000,10
3,COMMIT,1010,1000,0
"""


def output(*arguments: str) -> str:
    result = CliRunner().invoke(pgversus, ["statements", *arguments], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.stdout


@pytest.fixture
def export(tmp_path: Path) -> str:
    path = tmp_path / "export.csv"
    path.write_text(EXPORT)
    return str(path)


def test_statements_are_listed_with_shares_and_obstacles(export: str) -> None:
    lines = output(export).splitlines()
    assert lines == [
        f"{export}: pg_stat_statements in CSV, 3 found",
        "",
        "3 statements, 10 s of execution; 3 statements take 95 % of it",
        "",
        "share   calls  mean    kind     values       statement",
        "50.0 %  1 000  5 ms    reads    unknown      SELECT * FROM t WHERE a = $1",
        "40.0 %  10     400 ms  reads    none needed  SELECT count(*) FROM t",
        "10.0 %  1 010  990 µs  utility  none needed  COMMIT",
        "",
        "cannot be executed as the application does:",
        "  1 statement, 50.0 % of the time: no values for its parameters",
        "  1 statement, 10.0 % of the time: not a SELECT, INSERT, UPDATE, DELETE or MERGE",
    ]


def test_values_from_a_log_complete_an_export(export: str, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("LOG:  duration: 1.5 ms  execute q: SELECT * FROM t WHERE a = $1\nDETAIL:  Parameters: $1 = '5'\n")
    assert "no values" not in output(export, str(log))


def test_the_document_has_all_statements_without_passwords(export: str, tmp_path: Path) -> None:
    sql = tmp_path / "sql"
    sql.mkdir()
    (sql / "one.sql").write_text("SELECT 'x' AS one;")
    (sql / "role.sql").write_text("ALTER ROLE app PASSWORD 'geheim';")
    document = json.loads(output(export, str(sql), "--json", "-n", "1"))
    assert "geheim" not in json.dumps(document)
    assert document["schema"] == "pgversus.statements/1"
    assert [source["found"] for source in document["sources"]] == [3, 1, 1]
    assert [round(one["share"], 2) for one in document["statements"]] == [0.5, 0.4, 0.1, 0.0, 0.0]
    assert document["statements"][0]["obstacle"]


def test_statements_that_are_not_listed_are_counted(export: str) -> None:
    assert "and 2 other statements, 50.0 % of the time\n" in output(export, "-n", "1")


@pytest.mark.parametrize("name", ["missing.csv", "."])
def test_a_file_that_cannot_be_read_is_an_error(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StudyError) as caught:
        output(name)
    assert caught.value.slug == "study-no-file"


def test_the_document_can_be_read_again_as_a_source_of_the_same_statements(export: str, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("LOG:  duration: 1.5 ms  execute q: SELECT * FROM t WHERE a = $1\nDETAIL:  Parameters: $1 = '5'\n")
    (tmp_path / "named.sql").write_text("-- name: by value\n-- values: $1 = '7'\nSELECT * FROM u WHERE b = $1;\n")
    written = output(export, str(log), str(tmp_path / "named.sql"), "--json")
    listed = tmp_path / "statements.json"
    listed.write_text(written)
    again = json.loads(output(str(listed), "--json"))
    assert again["statements"] == json.loads(written)["statements"]
    source = {"file": str(listed), "form": "pgversus.statements/1", "found": 4, "prepared": 0, "skipped": {}}
    assert again["sources"] == [source]


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"calls": -1}, "statements.0.calls: Input should be greater than or equal to 0"),
        ({"seconds": "much"}, "statements.0.seconds: "),
        ({"samples": [{"values": []}]}, "statements.0.samples.0.text: Field required"),
    ],
)
def test_a_damaged_document_is_refused(export: str, tmp_path: Path, changed: dict[str, object], found: str) -> None:
    document = json.loads(output(export, "--json"))
    document["statements"][0] |= changed
    listed = tmp_path / "statements.json"
    listed.write_text(json.dumps(document, indent=2))
    with pytest.raises(StudyError) as caught:
        output(str(listed))
    assert (caught.value.slug, caught.value.where) == ("statements-bad-document", str(listed))
    assert caught.value.found.startswith(found)
