import pytest

from pgversus.study.study import Context
from pgversus.study.workload import PgbenchWorkload
from tests.unit.study.file.reading import SHORT, labels, problem, study

DIRTY = """\
title = "dead rows"
[factors]
server = ["15.10", "16.6"]
[factors.variables]
dead = [3, 70]
rows = ["spread", "contiguous"]
[workload]
operation = "VACUUM t"
prepare = ["dirty.sql"]
variables = { rows = "all", seed = 4 }
"""


def given(context: Context) -> list[dict[str, str]]:
    """Return the variables of each arm."""
    return [
        dict(arm.workload.variables if isinstance(arm.workload, PgbenchWorkload) else arm.dataset.variables)
        for arm in context.comparison.arms
    ]


def test_each_level_of_a_variable_is_a_context_and_is_passed_to_prepare() -> None:
    contexts = study(DIRTY).contexts
    assert [context.label for context in contexts] == [
        "dead=3 rows=spread",
        "dead=3 rows=contiguous",
        "dead=70 rows=spread",
        "dead=70 rows=contiguous",
    ]
    # A factor overrides a variable of the workload.
    assert given(contexts[3]) == [{"rows": "contiguous", "seed": "4", "dead": "70"}] * 2
    assert contexts[0].comparison.factors == ("server",)
    assert {arm.settings for context in contexts for arm in context.comparison.arms} == {()}


def test_arms_with_equal_variables_share_prepared_data() -> None:
    first, *_ = study(DIRTY).contexts
    baseline, contender = first.comparison.arms
    assert baseline.dataset is contender.dataset


def test_variables_are_passed_to_scripts_of_loads() -> None:
    text = SHORT.replace("[workload]", "[factors.variables]\nn = [1, true]\n[workload]")
    assert [given(context) for context in study(text).contexts] == [[{"n": "1"}] * 2, [{"n": "true"}] * 2]


def test_a_variable_is_compared_on_request_or_if_nothing_else_varies() -> None:
    requested = labels(f'compare = "rows"\nbaseline = "contiguous"\n{DIRTY}')
    assert requested[0] == ("server=15.10 dead=3", ["rows=contiguous", "rows=spread"])
    alone = DIRTY.replace('["15.10", "16.6"]', '["16.6"]').replace('rows = ["spread", "contiguous"]\n', "")
    assert labels(alone) == [("", ["dead=3", "dead=70"])]
    setting = alone.replace("[factors.variables]", "jit = [true, false]\n[factors.variables]")
    assert labels(setting) == [("dead=3", ["jit=on", "jit=off"]), ("dead=70", ["jit=on", "jit=off"])]
    (compared,) = study(alone).contexts
    assert given(compared) == [{"rows": "all", "seed": "4", "dead": level} for level in ("3", "70")]


def test_levels_of_variables_can_be_excluded() -> None:
    rows = '[[exclude]]\ndead = 70\nrows = "spread"\n[[exclude]]\nrows = "contiguous"\nserver = "16.6"\n'
    assert [label for label, _ in labels(DIRTY + rows)] == ["dead=3 rows=spread"]
    flag = SHORT.replace("[workload]", "[factors.variables]\nn = [true, false]\n[workload]")
    assert [label for label, _ in labels(flag + "[[exclude]]\nn = true\n")] == ["n=false"]


def test_a_profile_may_change_a_single_variable() -> None:
    quick = f"{DIRTY}[profiles.quick.factors.variables]\ndead = [50]\n"
    assert [label for label, _ in labels(quick)] == ["rows=spread", "rows=contiguous"]
    assert given(study(quick).contexts[0])[0]["dead"] == "50"
    wrong = problem(quick.replace("[50]", "50"))
    assert wrong.where == "planner.toml, line 12, [profiles.quick.factors.variables] dead"


@pytest.mark.parametrize(
    ("text", "slug", "where", "expected"),
    [
        (
            DIRTY.replace("[factors.variables]", "dead = [1, 2]\n[factors.variables]"),
            "study-file-conflict",
            "line 6, [factors.variables] dead",
            None,
        ),
        (f"{DIRTY}[settings]\ndead = 1\n", "study-file-conflict", "line 5, [factors.variables] dead", None),
        (f"{DIRTY}settings = {{ Dead = 1 }}\n", "study-file-conflict", "line 5, [factors.variables] dead", None),
        (DIRTY.replace("dead =", "load ="), "study-file-conflict", "line 5, [factors.variables] load", None),
        (DIRTY.replace("dead =", "Rows ="), "study-file-conflict", "line 6, [factors.variables] rows", None),
        (DIRTY.replace("[3, 70]", "[3, 3]"), "study-repeated-level", "line 5, [factors.variables] dead, item 2", None),
        (DIRTY.replace("[3, 70]", "3"), "study-file-bad-value", "line 5, [factors.variables] dead", None),
        (DIRTY.replace("[3, 70]", "[]"), "study-file-bad-value", "line 5, [factors.variables] dead", None),
        (
            DIRTY.replace("dead =", '"a b" ='),
            "study-file-bad-value",
            'line 5, [factors.variables] "a b"',
            "letters, digits and _",
        ),
        (
            DIRTY.replace('prepare = ["dirty.sql"]\nvariables = { rows = "all", seed = 4 }\n', ""),
            "study-idle-variables",
            "line 4, [factors.variables]",
            None,
        ),
        (
            f"{DIRTY}[[exclude]]\ndeed = 70\n",
            "study-unknown-level",
            "line 12, [[exclude]] deed",
            "server, workload, load, cache, dead, rows",
        ),
        (f"{DIRTY}[[exclude]]\ndead = 7\n", "study-unknown-level", "line 12, [[exclude]] dead", '"3" or "70"'),
        (f'compare = "raws"\n{DIRTY}', "study-unknown-level", "line 1, compare", "server, workload, dead, rows"),
    ],
)
def test_mistakes_in_variables_are_reported_with_their_lines(
    text: str, slug: str, where: str, expected: str | None
) -> None:
    reported = problem(text)
    assert (reported.slug, reported.where) == (slug, f"planner.toml, {where}")
    assert expected is None or reported.expected == expected
    assert all((reported.found, reported.expected, reported.to_do))


def test_an_invalid_variable_is_reported_once() -> None:
    assert problem(DIRTY.replace("[3, 70]", "3") + "[[exclude]]\ndead = 3\n").slug == "study-file-bad-value"
    wrong = DIRTY.replace("[3, 70]", "3")
    assert problem(f'compare = "dead"\n{wrong}').slug == "study-file-bad-value"


def test_a_load_variable_with_a_password_is_rejected_without_showing_it() -> None:
    factor = SHORT.replace("[workload]", '[factors.variables]\ndb_password = ["Geheim99", "x"]\n[workload]')
    for text in (factor, f'{SHORT}variables = {{ db_password = "Geheim99" }}\n'):
        found = problem(text)
        assert (found.slug, "Geheim99" in repr(found)) == ("study-bad-variable", False)


def test_prepare_variables_may_contain_passwords_hidden_in_labels() -> None:
    secret = DIRTY.replace("dead = [3, 70]", 'dead = [3]\ndb_password = ["Geheim99", "Geheim98"]')
    contexts = study(secret).contexts
    assert {context.label for context in contexts} == {
        *("db_password=... rows=spread", "db_password=... (2) rows=spread"),
        *("db_password=... rows=contiguous", "db_password=... (2) rows=contiguous"),
    }
    assert {given(context)[0]["db_password"] for context in contexts} == {"Geheim99", "Geheim98"}


def test_labels_of_settings_hide_passwords() -> None:
    text = SHORT.replace('["16.12", "17.8"]', '["17.8"]\narchive_command = ["PGPASSWORD=Geheim99 a", "b"]')
    assert labels(text) == [("", ["archive_command=PGPASSWORD=... a", "archive_command=b"])]


def test_problems_hide_values_of_secret_settings() -> None:
    for line in (
        'ssl_passphrase_command = ["echo Geheim99", "echo Geheim99"]',
        'ssl_passphrase_command = "echo Geheim99"',
        'ssl_passphrase_command = ["a", "b"]\n[[exclude]]\nssl_passphrase_command = "echo Geheim99"',
    ):
        text = SHORT.replace("[workload]", f"{line}\n[workload]", 1)
        assert "Geheim99" not in repr(problem(text))
