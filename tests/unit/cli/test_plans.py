"""`pgversus plans` on the command line, with files and standard input."""

import json
from pathlib import Path
from typing import Any

import pytest
from click import UsageError
from click.testing import CliRunner, Result

from pgversus.answers.plans import PlansAnswer
from pgversus.cli.main import pgversus
from pgversus.errors import HostError, PlanError, StudyError
from pgversus.text.translation import _
from tests.unit.plans.raw import node, scan

OLD = node("Sort", scan("t", Shared_Hit_Blocks=10), Sort_Key=["t.a"], Actual_Total_Time=9.0)
NEW = scan("t", "Index Scan", Index_Name="t_a", Actual_Total_Time=2.0)


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, plans in {"old": [OLD], "new": [NEW], "both": [OLD, NEW]}.items():
        Path(f"{name}.json").write_text(json.dumps([{"Plan": plan, "Execution Time": 10.0} for plan in plans]))


def typed(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(pgversus, ["plans", *arguments], input=stdin, standalone_mode=False)


def document(*arguments: str, stdin: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(typed(*arguments, "--json", stdin=stdin).stdout)
    return found


def test_sentences_come_before_both_plans() -> None:
    assert typed("old.json", "new.json").stdout.splitlines() == [
        "plan 1",
        "old.json -> new.json: different plan: different operators",
        "  - Seq Scan on t is now Index Scan using t_a on t",
        "  - removed: Sort (Sort Key: t.a)",
        "",
        "old.json:",
        "  Sort  (1 row, 9 ms)",
        "    Sort Key: t.a",
        "    Seq Scan on t  (1 row, 0 µs)",
        "",
        "new.json:",
        "  Index Scan using t_a on t  (1 row, 2 ms)",
    ]


def test_the_document_has_the_keys_that_programs_need() -> None:
    found = document("old.json", "new.json")
    assert found["schema"] == "pgversus.plans/1"
    (one,) = found["comparisons"]
    assert (one["statement"], one["baseline"], one["contender"]) == ("plan 1", "old.json", "new.json")
    assert (one["level"], one["same_plan"]) == ("operators", False)
    assert one["sentences"][0] == "Seq Scan on t is now Index Scan using t_a on t"
    assert set(one["fingerprints"]) == {"baseline", "contender"}
    assert set(one["fingerprints"]["baseline"]) == {"shape", "logic", "behaviour"}
    assert (one["time"]["changed_s"], one["time"]["changed_error_s"]) == (pytest.approx(-0.007), None)


def test_standard_input_can_be_one_of_the_files() -> None:
    text = Path("new.json").read_text()
    assert document("old.json", "-", stdin=text)["comparisons"][0]["contender"] == "-"
    assert document("-", "new.json", stdin=text)["comparisons"][0]["level"] == "identical"


def test_several_files_are_compared_with_the_first() -> None:
    found = document("old.json", "new.json", "old.json")["comparisons"]
    assert [(one["contender"], one["level"]) for one in found] == [("new.json", "operators"), ("old.json", "identical")]
    assert [one["statement"] for one in document("both.json", "both.json")["comparisons"]] == ["plan 1", "plan 2"]


def test_of_many_plans_only_the_trees_of_different_ones_are_shown() -> None:
    for name, plans in {"one": [OLD] * 21, "other": [*[OLD] * 20, NEW]}.items():
        Path(f"{name}.json").write_text(json.dumps([{"Plan": plan, "Execution Time": 10.0} for plan in plans]))
    text = typed("one.json", "other.json").stdout
    assert text.endswith("\n1 of 21 plans are different\n")
    assert (text.count("same plan"), text.count("\n  Sort  (")) == (20, 1)
    few = typed("both.json", "both.json").stdout
    assert few.count("\n  Sort  (") == 2
    assert "plans are different" not in few


def test_output_can_be_japanese() -> None:
    assert (
        "アクセス方法: Seq Scan on t → Index Scan using t_a on t"
        in typed("old.json", "new.json", "--lang", "ja").stdout
    )


def test_the_language_is_that_of_the_locale_unless_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    japanese = typed("old.json", "new.json").stdout
    assert japanese.startswith("実行計画 1\nold.json -> new.json: 異なる実行計画")
    assert typed("old.json", "new.json", "--lang", "en").stdout.startswith(
        "plan 1\nold.json -> new.json: different plan"
    )


def test_a_document_is_english_in_any_language() -> None:
    assert document("old.json", "new.json", "--lang", "ja") == document("old.json", "new.json")


def test_texts_are_escaped_in_markdown(tmp_path: Path) -> None:
    entry = {"Plan": scan("t", Filter="(a = '```<b>')"), "Query Text": "SELECT <b> | 1"}
    Path("odd_1.json").write_text(json.dumps([entry]))
    assert typed("odd_1.json", "odd_1.json", "--format", "markdown", "-o", "plans.md").stdout == ""
    text = (tmp_path / "plans.md").read_text()
    assert text.startswith("### SELECT \\<b\\> \\| 1\n")
    assert "\nodd\\_1.json → odd\\_1.json: " in text
    assert "<details><summary>odd_1.json</summary>\n\n````\n" in text
    assert "````\nSeq Scan on t  (1 row, 0 µs)\n  Filter: a = '```<b>'\n````" in text


def test_an_output_that_cannot_be_written_is_refused_before_any_server_is_fetched() -> None:
    error = typed("0.1", "0.2", "-o", "missing/plans.txt").exception
    assert isinstance(error, HostError)
    assert "missing" in error.where


@pytest.mark.parametrize(
    "flags", [("--set", "a=1"), ("-f", "no.sql"), ("-i",), ("-S",), ("-s", "2"), ("-D", "x=1"), ("--run-as", "nobody")]
)
def test_options_for_servers_are_refused_with_files(flags: tuple[str, ...]) -> None:
    error = typed("old.json", "new.json", *flags).exception
    assert isinstance(error, UsageError)
    assert "cannot be used with files of plans" in error.message


def test_a_missing_script_is_reported_with_the_command_and_its_own_options() -> None:
    error = typed("16.12", "17.8").exception
    assert isinstance(error, StudyError)
    assert error.where.endswith("plans")
    assert "--operation" not in error.found
    assert "operation" not in error.expected


@pytest.mark.parametrize("scripts", [("-f", "q.sql"), ("-S",), ("-D", "n=1")])
def test_statements_and_scripts_are_alternatives(scripts: tuple[str, ...]) -> None:
    error = typed("16", "17", "-i", "--statements", "statements.csv", *scripts).exception
    assert isinstance(error, UsageError)
    assert "cannot be used together with scripts" in error.message


@pytest.mark.parametrize("arguments", [(), ("old.json",), ("-", "-")])
def test_two_different_inputs_are_required(arguments: tuple[str, ...]) -> None:
    assert type(typed(*arguments).exception).__name__ in ("UsageError", "MissingParameter")


def test_files_with_different_numbers_of_plans_are_rejected() -> None:
    error = typed("old.json", "both.json").exception
    assert isinstance(error, PlanError)
    assert (error.slug, error.found, error.expected) == ("plan-other-number", "2 plans", "1, as in old.json")


def test_missing_and_invalid_files_are_reported() -> None:
    assert isinstance(typed("old.json", "nothing.json").exception, StudyError)
    Path("text.json").write_text("Seq Scan on t  (cost=0.00..1.00 rows=1 width=4)")
    assert isinstance(typed("old.json", "text.json").exception, PlanError)


def test_a_page_escapes_texts_and_marks_changes() -> None:
    entry = {"Plan": scan("t", Filter="(a = '<script>')"), "Query Text": "SELECT '<b>\x1b[31m'"}
    Path("odd.json").write_text(json.dumps([entry]))
    page = typed("odd.json", "new.json", "--format", "html", "--lang", "ja").stdout
    assert page.startswith('<!doctype html>\n<html lang="ja">')
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "SELECT &#39;&lt;b&gt;\\x1b[31m&#39;" in page
    assert page.count('class="changed"') == 2
    assert "src=" not in page


@pytest.mark.parametrize("form", [("--json",), ("--format", "text"), ("--format", "markdown"), ("--format", "html")])
def test_a_lone_surrogate_in_a_plan_can_be_shown_and_written(form: tuple[str, ...]) -> None:
    plan = scan("t", Filter="(a = '\\ud83d')")
    Path("half.json").write_text(json.dumps([{"Plan": plan, "Query Text": "SELECT '\\ud83d'"}]).replace("\\\\", "\\"))
    ended = typed("half.json", "half.json", *form, "-o", "out")
    assert ended.exit_code == 0, ended.exception
    assert "ud83d" in Path("out").read_text()


@pytest.mark.parametrize("form", [("--json",), ("--format", "text"), ("--format", "markdown"), ("--format", "html")])
def test_passwords_in_a_plan_are_not_shown(form: tuple[str, ...]) -> None:
    for name, password in (("a", "Geheim99"), ("b", "AuchGeheim")):
        condition = f"((f('host=h password={password}'::text) = 1) AND (t.a > 3))"
        plan = {"Plan": scan("t", Filter=condition), "Query Text": f"SELECT f('postgresql://u:{password}@h')"}
        Path(f"{name}.json").write_text(json.dumps([plan]))
    said = typed("a.json", "b.json", *form).stdout
    assert "Geheim" not in said
    assert "SELECT f(" in said


def test_the_error_for_a_broken_plan_contains_no_password() -> None:
    Path("cut.json").write_text('[{"Plan": {"Filter": "PASSWORD \'Geheim99')
    with pytest.raises(PlanError) as caught:
        CliRunner().invoke(pgversus, ["plans", "cut.json", "new.json"], standalone_mode=False, catch_exceptions=False)
    assert "Geheim99" not in str(caught.value)


def test_standard_input_that_is_not_text_is_reported() -> None:
    found = CliRunner().invoke(pgversus, ["plans", "old.json", "-"], input=b"\xff\xfe\x00", standalone_mode=False)
    assert isinstance(found.exception, StudyError)
    assert found.exception.slug == "study-script-encoding"


def test_only_the_report_is_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []

    def of_files(_names: object) -> PlansAnswer:
        found.append(_("none"))
        return PlansAnswer(compared=())

    monkeypatch.setattr("pgversus.cli.plans._of_files", of_files)
    assert typed("old.json", "new.json", "--lang", "ja").exit_code == 0
    assert found == ["none"]
