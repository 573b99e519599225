"""Equal orders share a build; any different input results in a different one."""

from dataclasses import replace
from pathlib import Path

import pytest

from pgversus.builds import model as module
from pgversus.builds.build_commands import FORM
from pgversus.builds.model import Order, SourceFacts, order_of
from pgversus.host.identity import ServerUser
from pgversus.study.build_options import NO_OPTIONS, USUAL_MANNER, BuildManner, BuildOptions, BuildProfile, BuildSystem

FACTS = SourceFacts(words="postgresql-17.8.tar.bz2", sha256="a" * 64)


class Tarball:
    """A source whose files are never written."""

    def __init__(self, facts: SourceFacts) -> None:
        self.facts = facts

    def lay_out(self, target: Path, user: ServerUser) -> None:
        raise AssertionError(target, user)


def order(
    label: str = "17+cassert",
    facts: SourceFacts = FACTS,
    options: BuildOptions = NO_OPTIONS,
    manner: BuildManner = USUAL_MANNER,
    compiler: str = "gcc 12.2.0",
) -> Order:
    return order_of(label, Tarball(facts), options, manner, compiler)


@pytest.mark.parametrize(
    "other",
    [
        order(facts=replace(FACTS, sha256="b" * 64)),
        order(compiler="gcc 14.2.0"),
        order(manner=BuildManner(profile=BuildProfile.FULL)),
        order(manner=BuildManner(system=BuildSystem.MESON)),
        *(
            order(options=options)
            for options in (
                BuildOptions(block_size_kb=16),
                BuildOptions(wal_block_size_kb=16),
                BuildOptions(cassert=True),
                BuildOptions(cflags="-O2"),
                BuildOptions(compiler="gcc"),
                BuildOptions(handed_on=("with-lz4",)),
            )
        ),
    ],
)
def test_different_inputs_result_in_different_builds(other: Order) -> None:
    assert other.key != order().key
    assert other.name != order().name


@pytest.mark.parametrize(
    "same",
    [
        order("17.8+cassert"),
        order(
            facts=replace(FACTS, words="another name", checked="a file", commit="c", repository="/r", is_changed=True)
        ),
    ],
)
def test_names_do_not_affect_the_build(same: Order) -> None:
    assert (same.key, same.name) == (order().key, order().name)


def test_a_different_recipe_results_in_a_different_build(monkeypatch: pytest.MonkeyPatch) -> None:
    before = order().key
    monkeypatch.setattr(module, "FORM", FORM + 1)
    assert order().key != before


def test_a_build_is_named_after_the_first_digits_of_its_key() -> None:
    assert len(order().key) == 64
    assert order().name == f"source-{order().key[:12]}"
