import json
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from pgversus.study.comparison import CacheState
from pgversus.study.file.description import flat_schema
from pgversus.study.file.reference import LONG_EXAMPLE, OPERATION_EXAMPLE, page, schema_document
from pgversus.study.file.schema import DesignTable, StudyTable
from pgversus.study.metrics import JUDGED_BY_NAME
from pgversus.study.workload import QueryMode
from tests.unit.study.file.reading import SHORT, study

DOCS = Path(__file__).parents[4] / "docs"


def test_the_page_and_the_json_schema_are_up_to_date() -> None:
    assert (DOCS / "study-file.md").read_text() == page(), "make docs"
    assert (DOCS / "study-file.schema.json").read_text() == schema_document(), "make docs"


def test_every_example_on_the_page_is_valid() -> None:
    examples = re.findall(r"```toml\n(.*?)```", page(), re.DOTALL)
    whole = [example for example in examples if example.startswith("title")]
    assert len(whole) == 3
    for example in whole:
        study(example)
    for part in [example for example in examples if example not in whole]:
        base = LONG_EXAMPLE.partition("[profiles.quick]")[0].partition("[settings]")
        # A partial example replaces the same part of the long example.
        rest = base[2][base[2].index("[workloads") :].partition("# The mix")[0]
        study(base[0] + rest + part)


def test_the_long_example_matches_its_comments() -> None:
    found = study(LONG_EXAMPLE, profile="published")
    assert (found.treatments, len(found.contexts)) == (2 * (4 + 3) * (2 + 2 + 1), 20)
    assert (study(LONG_EXAMPLE).treatments, study(LONG_EXAMPLE).name) == (12, "planner-quick")


def test_the_operation_example_matches_the_page() -> None:
    found = study(OPERATION_EXAMPLE)
    assert len(found.contexts) == 8
    assert {arm.dataset.variables for context in found.contexts for arm in context.comparison.arms} == {
        (("dead", level),) for level in ("3", "20", "50", "70")
    }


def test_the_schema_lists_all_metrics_cache_states_and_query_modes() -> None:
    properties = flat_schema()["properties"]
    assert properties["design"]["properties"]["metric"]["enum"] == list(JUDGED_BY_NAME)
    assert properties["cache"]["enum"] == list(CacheState)
    assert properties["load"]["properties"]["protocol"]["enum"] == list(QueryMode)


def test_every_key_has_a_meaning_a_default_and_a_valid_example() -> None:
    def keys(schema: dict[str, object]) -> list[tuple[str, dict[str, object]]]:
        properties = schema.get("properties")
        found = list(properties.items()) if isinstance(properties, dict) else []
        return found + [inner for _, part in found for inner in keys(part)]

    for name, part in keys(dict(flat_schema())):
        assert part["description"], name
        assert part["examples"], name
        assert name == "title" or part["x-default"], name


@pytest.mark.parametrize("name", DesignTable.model_fields)
def test_design_examples_are_valid(name: str) -> None:
    (example,) = flat_schema()["properties"]["design"]["properties"][name]["examples"]
    assert study(f"{SHORT}[design]\n{name} = {json.dumps(example)}\n").verdicts == 1


def test_null_and_unknown_keys_are_not_allowed() -> None:
    document = json.loads(schema_document())
    assert "null" not in schema_document().replace("/dev/null", "")
    open_tables = [name for name, part in document["$defs"].items() if part.get("additionalProperties") is not False]
    assert sorted(set(open_tables) - {"BuildProfile", "BuildSystem", "CacheState", "QueryMode"}) == ["FactorsTable"]
    with pytest.raises(ValidationError):
        StudyTable.model_validate({"title": "t", "x": 1})
