import pytest

from pgversus.statements.parsing import parsed, separated
from pgversus.statements.statement import StatementKind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELECT 1", StatementKind.READS),
        ("WITH a AS (SELECT 1) SELECT * FROM a", StatementKind.READS),
        ("VALUES (1)", StatementKind.READS),
        ("TABLE t", StatementKind.READS),
        ("SELECT * FROM t FOR UPDATE", StatementKind.READS),
        ("SELECT * INTO u FROM t", StatementKind.UTILITY),
        ("INSERT INTO t VALUES ($1) ON CONFLICT DO NOTHING", StatementKind.WRITES),
        ("UPDATE t SET a = 1", StatementKind.WRITES),
        ("DELETE FROM t", StatementKind.WRITES),
        ("WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a", StatementKind.WRITES),
        ("WITH a AS (SELECT 1), b AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * FROM b", StatementKind.WRITES),
        ("MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE", StatementKind.WRITES),
        ("BEGIN", StatementKind.UTILITY),
        ("DROP TABLE t", StatementKind.UTILITY),
        ("EXECUTE q(1)", StatementKind.UTILITY),
        ("SELECT 1; DROP TABLE t", StatementKind.UNKNOWN),
        ("SELEC 1", StatementKind.UNKNOWN),
        ("", StatementKind.UNKNOWN),
        ("SELECT 1\0", StatementKind.UNKNOWN),
    ],
)
def test_the_kind_of_a_statement_is_that_of_its_tree(text: str, kind: StatementKind) -> None:
    found = parsed(text)
    assert found.kind is kind
    assert bool(found.problem) is (kind is StatementKind.UNKNOWN)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT * FROM t WHERE a = 1", "select *\nfrom t where a = $1 -- comment"),
        ("SELECT * FROM t WHERE a IN (1, 2, 3)", "SELECT * FROM t WHERE a IN ($1, $2)"),
        ("SELECT * FROM t WHERE a IN (1, 2, 3)", "SELECT * FROM t WHERE a IN ($1 /*, ... */)"),
        ("SELECT * FROM events_2023 WHERE a = 1", "SELECT * FROM events_2023 WHERE a = 2"),
        ("SELECT extract(year FROM d) FROM t", "SELECT extract(year FROM d) FROM t;"),
    ],
)
def test_statements_that_differ_in_constants_have_one_fingerprint(one: str, other: str) -> None:
    assert parsed(one).fingerprint == parsed(other).fingerprint


def test_different_statements_have_different_fingerprints() -> None:
    texts = [
        "SELECT a FROM t",
        "SELECT b FROM t",
        "SELECT a FROM u",
        "SELECT a FROM t WHERE a = 1",
        "SELECT a FROM events_2023",
        "SELECT a FROM events_2024",
        "SELECT a FROM events_2023 JOIN events_2024 USING (a)",
        "SELECT f(a, b) FROM t",
        "SELECT f(b, a) FROM t",
        "SELECT f(a, 1) FROM t",
        "SELECT f(1, a) FROM t",
        "SELECT coalesce(a, b) FROM t",
        "SELECT coalesce(b, a) FROM t",
        "nonsense",
        "other",
    ]
    assert len({parsed(text).fingerprint for text in texts}) == len(texts)


@pytest.mark.parametrize("text", ["SELECT " + "(" * 100_000, "SELECT '" + "x" * 2_000_000 + "'"])
def test_a_text_that_exhausts_the_parser_is_unknown(text: str) -> None:
    assert parsed(text).kind is StatementKind.UNKNOWN


def test_deep_parentheses_are_parsed() -> None:
    assert parsed("SELECT " + "(" * 1000 + "1" + ")" * 1000).fingerprint == parsed("SELECT 2").fingerprint


def test_a_text_that_cannot_be_parsed_is_separated_at_semicolons() -> None:
    text = "\\timing on\n-- name: a\nSELECT ';';\nSELEKT 1;\nSELECT $$;$$ /* ; */"
    assert separated(text) == ["-- name: a\nSELECT ';';", "\nSELEKT 1;", "\nSELECT $$;$$ /* ; */"]
    assert [parsed(one).kind for one in separated(text)] == [
        StatementKind.READS,
        StatementKind.UNKNOWN,
        StatementKind.READS,
    ]
    assert separated("SELECT 'unclosed; SELECT 2") == ["SELECT 'unclosed;", " SELECT 2"]


def test_the_first_of_several_queries_may_create_a_table() -> None:
    assert parsed("SELECT a INTO n FROM t UNION SELECT 1 UNION SELECT 2").kind is StatementKind.UTILITY
