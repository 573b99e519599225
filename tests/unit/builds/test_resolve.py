from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.builds.model import FamilyOffer
from pgversus.builds.ready_made import Choice, missing_between, resolve
from pgversus.errors import BuildError, ExitCode
from pgversus.study.servers import BuildFamily, Release, Version, parse_server, versions_of


def version(text: str) -> Version:
    major, minor = text.split(".")
    return Version(major=int(major), minor=int(minor))


def offer(family: BuildFamily, *versions: str, problem: str = "", age_s: float = 0.0) -> FamilyOffer:
    return FamilyOffer(family=family, versions=tuple(map(version, versions)), problem=problem, age_s=age_s)


def releases(*texts: str) -> list[Release]:
    servers = [parse_server(text) for text in texts]
    return [server for server in servers if isinstance(server, Release)]


def resolved(texts: Sequence[str], *offers: FamilyOffer) -> list[str]:
    return [f"{choice.family}:{choice.version}" for choice in resolve(releases(*texts), offers)]


def refused(texts: Sequence[str], *offers: FamilyOffer) -> BuildError:
    with pytest.raises(BuildError) as caught:
        resolve(releases(*texts), offers)
    assert caught.value.exit_code is ExitCode.HOST
    return caught.value


WHEEL = offer(BuildFamily.WHEEL, "16.15", "17.11", "18.6")
ZONKY = offer(BuildFamily.ZONKY, "12.22", "16.6", "16.12", "16.15", "17.4", "17.8", "17.11")
OFFLINE = (offer(BuildFamily.WHEEL, problem="no route to host"), offer(BuildFamily.ZONKY, problem="timed out"))


def test_the_first_family_with_all_versions_is_used() -> None:
    assert resolved(["16", "17"], WHEEL, ZONKY) == ["wheel:16.15", "wheel:17.11"]
    assert resolved(["16", "17"], ZONKY, WHEEL) == ["zonky:16.15", "zonky:17.11"]


def test_one_missing_version_moves_all_arms_to_the_next_family() -> None:
    assert resolved(["17.11", "16.12"], WHEEL, ZONKY) == ["zonky:17.11", "zonky:16.12"]


def test_without_a_minor_the_newest_by_number_is_used() -> None:
    assert resolved(["17"], offer(BuildFamily.ZONKY, "17.9", "17.10", "17.2")) == ["zonky:17.10"]


def test_the_order_of_names_and_duplicates_are_preserved() -> None:
    assert resolved(["17.8", "16.12", "17.8"], WHEEL, ZONKY) == ["zonky:17.8", "zonky:16.12", "zonky:17.8"]


def test_families_given_by_the_user_may_be_mixed() -> None:
    assert resolved(["zonky:16.6", "wheel:17.11"], WHEEL, ZONKY) == ["zonky:16.6", "wheel:17.11"]


def test_a_given_family_is_preferred_for_the_other_names() -> None:
    assert resolved(["zonky:16.12", "17.11"], WHEEL, ZONKY) == ["zonky:16.12", "zonky:17.11"]
    assert resolved(["17", "zonky:16.15"], WHEEL, ZONKY) == ["zonky:17.11", "zonky:16.15"]
    assert resolved(["zonky:16.6", "wheel:18", "17"], WHEEL, ZONKY) == ["zonky:16.6", "wheel:18.6", "wheel:17.11"]


def test_a_given_family_is_not_required_for_the_other_names() -> None:
    assert resolved(["zonky:16.6", "17", "18"], WHEEL, ZONKY) == ["zonky:16.6", "wheel:17.11", "wheel:18.6"]


def test_no_names_require_no_family() -> None:
    assert resolve([], [WHEEL, ZONKY]) == ()


@given(st.lists(st.sampled_from(["12", "16", "16.6", "16.12", "16.15", "17", "17.8", "17.11", "18"]), min_size=1))
def test_names_without_a_family_share_one_and_get_the_requested_versions(texts: list[str]) -> None:
    wanted = releases(*texts)
    try:
        choices = resolve(wanted, [WHEEL, ZONKY])
    except BuildError as error:
        assert error.slug == "build-no-common-family"  # noqa: PT017 - the other branch is not a failure
        assert not any(set(texts) <= reach for reach in ({"12", "16", "17"}, {"16", "17", "18"}))
        return
    assert len({choice.family for choice in choices}) == 1
    assert all(release.admits(choice.version) for release, choice in zip(wanted, choices, strict=True))


def test_an_unknown_version_is_reported_with_its_neighbors_in_each_family() -> None:
    error = refused(["16", "17.7"], WHEEL, ZONKY)
    assert error.slug == "build-unknown-version"
    assert "17.7" in error.what
    assert "zonky has 17.4 and 17.8" in error.found
    assert "wheel has 17.11" in error.found
    assert "use 17.8" in error.to_do


def test_a_version_that_is_too_new_is_reported_with_the_newest_one() -> None:
    error = refused(["17.99"], ZONKY)
    assert error.found == "zonky has 17.11"
    assert "use 17.11" in error.to_do


def test_the_lower_of_two_equally_near_versions_is_suggested() -> None:
    assert "use 17.4" in refused(["17.6"], offer(BuildFamily.ZONKY, "17.4", "17.8")).to_do


def test_an_unknown_major_is_reported_with_the_available_ones() -> None:
    error = refused(["13"], WHEEL, ZONKY)
    assert error.found == "wheel has majors 16 to 18; zonky has majors 12 to 17"
    assert "use 18.6" in error.to_do


def test_a_given_family_that_lacks_the_version_is_not_replaced() -> None:
    error = refused(["wheel:17.8", "17"], WHEEL, ZONKY)
    assert error.slug == "build-unknown-version"
    assert error.found == "wheel has 17.11"


def test_versions_without_a_common_family_are_rejected() -> None:
    error = refused(["16.6", "18"], WHEEL, ZONKY)
    assert error.slug == "build-no-common-family"
    assert "16.6, 18" in error.what
    assert "wheel has 16.15" in error.found
    assert "zonky has majors 12 to 17" in error.found
    assert "zonky:16.6" in error.to_do


def test_without_lists_the_error_gives_the_reason_and_an_alternative() -> None:
    error = refused(["17.8"], *OFFLINE)
    assert error.slug == "build-offline"
    assert error.found == "wheel: no route to host; zonky: timed out"
    assert "bin directory" in error.to_do


def test_an_untrusted_certificate_is_distinguished_from_no_connection() -> None:
    error = refused(["17.8"], offer(BuildFamily.WHEEL, problem="certificate verify failed"), OFFLINE[1])
    assert error.slug == "build-certificate"
    assert "certificate" in error.to_do


def test_a_family_that_could_not_be_queried_is_reported() -> None:
    error = refused(["17.7"], OFFLINE[0], ZONKY)
    assert "wheel could not be queried: no route to host" in error.found
    assert "zonky has 17.4 and 17.8" in error.found


def test_the_age_of_an_old_list_is_reported() -> None:
    error = refused(["17.7"], offer(BuildFamily.ZONKY, "17.4", problem="timed out", age_s=7200))
    assert error.found == "zonky (list 2 h old, timed out) has 17.4"


def test_an_old_list_with_the_version_is_sufficient() -> None:
    found = resolve(releases("17.4"), [offer(BuildFamily.ZONKY, "17.4", problem="timed out", age_s=7200)])
    assert found == (Choice(family=BuildFamily.ZONKY, version=version("17.4")),)


def missing(text: str, *offers: FamilyOffer) -> list[str]:
    return [str(one) for one in missing_between(releases(*versions_of(text)), offers)]


def test_versions_of_a_range_that_no_family_with_its_ends_has_are_missing() -> None:
    released = offer(BuildFamily.ZONKY, "17.0", "17.2", "17.4", "17.5")
    assert missing("17.0..17.5", WHEEL, released) == ["17.1", "17.3"]
    assert missing("zonky:17.0..17.5", WHEEL, released) == ["17.1", "17.3"]
    assert missing("17.4..17.6", WHEEL, released) == []
    # The family with the fewest missing ones.
    assert missing("17.0..17.5", offer(BuildFamily.WHEEL, "17.0", "17.5"), released) == ["17.1", "17.3"]
    assert missing("17.0..17.5", *OFFLINE) == []
