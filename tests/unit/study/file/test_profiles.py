import pytest

from tests.unit.study.file.reading import SHORT, labels, problem, study

PROFILES = f"""\
{SHORT}settings = {{ jit = "on", geqo = "on" }}
[dataset]
scale = 100
setup = ["a.sql"]
[profiles.quick.dataset]
scale = 1
[profiles.quick.workload.settings]
jit = "off"
[profiles.published]
factors = {{ server = ["15", "16"] }}
"""


def test_a_profile_merges_tables_key_by_key() -> None:
    found = study(PROFILES, profile="quick")
    comparison = found.contexts[0].comparison
    assert found.name == "planner-quick"
    assert (comparison.dataset.pgbench_scale, len(comparison.dataset.setup_files)) == (1, 1)
    assert [str(setting) for setting in comparison.baseline.settings] == ["jit=off", "geqo=on"]


def test_a_profile_replaces_values_that_are_not_tables() -> None:
    assert labels(PROFILES, profile="published") == [("", ["15", "16"])]
    rows = f'{SHORT}[[only]]\nworkload = "nothing"\n[profiles.quick]\nonly = []\n'
    assert labels(rows) == [("", ["16.12", "17.8"])]


def test_quick_is_the_default_profile() -> None:
    assert study(PROFILES) == study(PROFILES, profile="quick")


def test_a_file_without_quick_uses_no_profile_by_default() -> None:
    found = study(PROFILES.replace("profiles.quick", "profiles.slow"))
    assert found.name == "planner"
    assert found.contexts[0].comparison.dataset.pgbench_scale == 100


def test_a_profile_may_add_missing_keys() -> None:
    bare = 'title = "t"\n[workload]\nsql = "1"\n[profiles.both.factors]\nserver = ["16", "17"]\n'
    assert labels(bare, profile="both") == [("", ["16", "17"])]
    assert problem(bare).slug == "study-file-missing-key"


@pytest.mark.parametrize(("requested", "to_do"), [("publshed", "--profile published"), ("zzz", "remove --profile")])
def test_an_unknown_profile_suggests_a_similar_name(requested: str, to_do: str) -> None:
    found = problem(PROFILES, profile=requested)
    assert (found.slug, found.to_do) == ("study-unknown-profile", to_do)
    assert found.expected == '"quick", "published"'


def test_a_mistake_in_a_profile_is_reported_with_its_line() -> None:
    text = PROFILES.replace("scale = 1\n", 'scale = 1\nsetup = ["missing.sql"]\n')
    found = problem(text)
    assert found.where == "planner.toml, line 12, [profiles.quick.dataset] setup, item 1"
    assert study(text, profile="published").name == "planner-published"


def test_misspelled_keys_are_reported_in_unused_profiles() -> None:
    found = problem(PROFILES + "[profiles.slow.desing]\n", profile="quick")
    assert (found.slug, found.to_do) == ("study-file-unknown-key", "did you mean design?")


def test_a_profile_cannot_change_the_title() -> None:
    assert problem(f'{SHORT}[profiles.quick]\ntitle = "x"\n').slug == "study-file-unknown-key"
