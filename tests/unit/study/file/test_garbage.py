"""Any file yields a study or a list of problems, and no other result."""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.study_files import changed_file, is_study, near_a_good_one, of_real_keys
from tests.unit.study.file.reading import SHORT

pytestmark = pytest.mark.slow

EACH = 10
"""Files are generated from one seed, because drawing takes most of the time of a property test."""


def many(count: int) -> settings:
    """Settings for a fixed number of examples, the same in every run."""
    ignored = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=count, derandomize=True, deadline=None, suppress_health_check=ignored)


@pytest.mark.parametrize("above", ["", "[factors]", "[settings]", "[datasets]", "[workloads]", "[profiles]"])
@pytest.mark.parametrize("value", ["1", '"workloads"', '["1", "2"]', "{x = 1}"])
def test_a_key_may_have_any_name(above: str, value: str) -> None:
    text = SHORT.replace("[factors]", f'[factors]\n"[key]" = {value}') if above == "[factors]" else SHORT
    text = f'"[key]" = {value}\n{text}' if not above else text
    assert not is_study(text if above in ("", "[factors]") else f'{text}\n{above}\n"[key]" = {value}\n')


@many(1000)
@given(st.text(max_size=80) | st.text(alphabet="ab01.=[]{}\"'#, \n\\-:", max_size=80))
def test_any_text_yields_a_study_or_problems(text: str) -> None:
    assert not is_study(text)


@many(300)
@given(st.integers(0, 2**64))
def test_any_document_with_known_keys_yields_a_study_or_problems(seed: int) -> None:
    rng = Random(seed)  # noqa: S311 - a test, no secret
    for _ in range(EACH):
        is_study(of_real_keys(rng), rng.choice([None, "quick", "a"]))


@many(300)
@given(st.integers(0, 2**64))
def test_any_variant_of_a_valid_document_yields_a_study_or_problems(seed: int) -> None:
    rng = Random(seed)  # noqa: S311 - a test, no secret
    for _ in range(EACH):
        is_study(near_a_good_one(rng))


@many(320)
@given(st.integers(0, 2**64))
def test_any_mutation_of_a_valid_file_yields_a_study_or_problems(seed: int) -> None:
    rng = Random(seed)  # noqa: S311 - a test, no secret
    for _ in range(EACH):
        is_study(changed_file(rng), rng.choice([None, "quick", "published"]))
