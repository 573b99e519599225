from collections.abc import Mapping
from dataclasses import replace

import pytest

from pgversus.errors import DatasetError, ExitCode
from pgversus.postgres.catalog import ServerProperties, SettingValue, TableDigest
from pgversus.postgres.fingerprint import Fingerprint, differences, refuse_unequal_data
from pgversus.study.caveats import Difference

PROPERTIES = ServerProperties(
    version="PostgreSQL 17.8 on x86_64-pc-linux-gnu, compiled by gcc (Debian 7.5.0-3) 7.5.0, 64-bit",
    version_num=170008,
    encoding="UTF8",
    collation="C",
    character_type="C",
    has_jit=False,
    configuration={"CFLAGS": "-O2", "CONFIGURE": "'--prefix=/a/b' '--with-icu' '--libdir=/x y'  '--with-lz4'"},
)
SAME = {"public.t": TableDigest(rows=3, digest="aa"), "public.u": TableDigest(rows=0, digest="")}


def default(value: str) -> SettingValue:
    return SettingValue(value=value, source="default", context="user")


def chosen(value: str) -> SettingValue:
    return SettingValue(value=value, source="command line", context="user")


def fingerprint(
    tables: Mapping[str, TableDigest] = SAME,
    settings: Mapping[str, SettingValue] | None = None,
    properties: ServerProperties = PROPERTIES,
    indexes: Mapping[str, str] | None = None,
) -> Fingerprint:
    return Fingerprint(tables=tables, indexes=indexes or {}, settings=settings or {}, properties=properties)


def refused(*fingerprints: Fingerprint) -> DatasetError:
    labels = [f"arm{index}" for index in range(len(fingerprints))]
    with pytest.raises(DatasetError) as caught:
        refuse_unequal_data(labels, fingerprints)
    assert caught.value.slug == "dataset-unequal"
    assert caught.value.exit_code is ExitCode.USAGE
    return caught.value


def of_settings(*arms: Mapping[str, SettingValue], factors: tuple[str, ...] = ("server",)) -> tuple[Difference, ...]:
    return differences([fingerprint(settings=arm) for arm in arms], factors)


def test_equal_rows_are_not_refused() -> None:
    fingerprints = [fingerprint(), fingerprint(dict(reversed(SAME.items())))]
    refuse_unequal_data(["a", "b"], fingerprints)
    assert fingerprints[0] == fingerprints[1]


def test_an_unequal_table_is_named_with_both_counts() -> None:
    error = refused(fingerprint(), fingerprint({**SAME, "public.t": TableDigest(rows=4, digest="bb")}))
    assert error.found == "public.t: 3 rows on arm0, 4 rows on arm1"
    assert error.where == "arm0 and arm1"


def test_as_many_rows_with_other_content_are_told_apart() -> None:
    error = refused(fingerprint(), fingerprint({**SAME, "public.t": TableDigest(rows=3, digest="bb")}))
    assert error.found == "public.t: 3 rows on both, with different content"


def test_a_table_that_one_side_lacks_names_the_side_that_has_it() -> None:
    fewer = {"public.u": SAME["public.u"]}
    assert refused(fingerprint(), fingerprint(fewer)).found == "public.t is on arm0 only (3 rows)"
    assert refused(fingerprint(fewer), fingerprint()).found == "public.t is on arm1 only (3 rows)"


def test_an_empty_table_that_one_side_lacks_is_a_difference() -> None:
    assert refused(fingerprint(), fingerprint({"public.t": SAME["public.t"]})).found == (
        "public.u is on arm0 only (0 rows)"
    )


def test_every_unequal_table_is_named() -> None:
    error = refused(fingerprint(), fingerprint({}))
    assert error.found == "public.t is on arm0 only (3 rows); public.u is on arm0 only (0 rows)"


def test_each_contender_is_held_against_the_baseline() -> None:
    error = refused(fingerprint(), fingerprint(), fingerprint({**SAME, "public.t": TableDigest(rows=9, digest="")}))
    assert error.where == "arm0 and arm2"


def test_equal_servers_have_no_differences() -> None:
    assert differences([fingerprint(settings={"jit": default("on")})] * 3, ("server",)) == ()


def test_a_default_that_differs_is_marked_as_one() -> None:
    (found,) = of_settings({"jit": default("off")}, {"jit": default("on")})
    assert found == Difference(kind="setting", name="jit", values=("off", "on"), is_default=True)


def test_a_setting_that_somebody_chose_is_no_default() -> None:
    (found,) = of_settings({"jit": default("off")}, {"jit": chosen("on")})
    assert found == Difference(kind="setting", name="jit", values=("off", "on"), is_default=False)


def test_what_the_server_computes_from_others_counts_as_a_default() -> None:
    computed = SettingValue(value="512", source="override", context="postmaster")
    (found,) = of_settings({"wal_buffers": computed}, {"wal_buffers": default("1024")})
    assert found.is_default


def test_what_initdb_fixed_is_no_default() -> None:
    fixed = SettingValue(value="on", source="override", context="internal")
    (found,) = of_settings({"data_checksums": fixed}, {"data_checksums": default("off")})
    assert not found.is_default


def test_a_chosen_value_that_equals_the_default_is_no_difference() -> None:
    assert of_settings({"jit": default("on")}, {"jit": chosen("on")}) == ()


@pytest.mark.parametrize("factor", ["work_mem", "WORK_MEM"])
def test_a_factor_is_not_a_difference(factor: str) -> None:
    arms = ({"work_mem": chosen("4096"), "jit": chosen("on")}, {"work_mem": chosen("65536"), "jit": chosen("off")})
    assert [found.name for found in of_settings(*arms, factors=(factor,))] == ["jit"]


def test_a_setting_whose_name_has_capitals_can_be_the_factor() -> None:
    assert of_settings({"DateStyle": chosen("ISO")}, {"DateStyle": chosen("SQL")}, factors=("datestyle",)) == ()


def test_a_setting_that_a_version_lacks_matters_only_when_the_other_chose_it() -> None:
    assert of_settings({}, {"io_method": default("worker")}) == ()
    (found,) = of_settings({}, {"io_method": chosen("sync")})
    assert found == Difference(kind="setting", name="io_method", values=("", "sync"), is_default=False)


@pytest.mark.parametrize("name", ["port", "data_directory", "cluster_name", "server_version", "application_name"])
def test_what_is_own_to_each_server_is_no_difference(name: str) -> None:
    assert of_settings({name: chosen("a")}, {name: chosen("b")}) == ()


def test_the_values_stand_in_the_order_of_the_arms() -> None:
    (found,) = of_settings({"a": chosen("1")}, {"a": chosen("2")}, {"a": chosen("1")})
    assert found.values == ("1", "2", "1")


def test_another_compiler_or_other_flags_are_differences_of_the_build() -> None:
    other = replace(
        PROPERTIES,
        version=PROPERTIES.version.replace("gcc (Debian 7.5.0-3) 7.5.0", "clang 18"),
        configuration={**PROPERTIES.configuration, "CFLAGS": "-O3"},
        has_jit=True,
    )
    found = differences([fingerprint(), fingerprint(properties=other)], ())
    assert {(d.name, d.values) for d in found} == {
        ("compiler", ("gcc (Debian 7.5.0-3) 7.5.0", "clang 18")),
        ("CFLAGS", ("-O2", "-O3")),
        ("JIT available", ("no", "yes")),
    }
    assert all(d.kind == "build" and not d.is_default for d in found)


def test_paths_of_configure_are_no_difference() -> None:
    other = replace(
        PROPERTIES, configuration={"CFLAGS": "-O2", "CONFIGURE": "'--prefix=/other' '--with-icu' '--with-lz4'"}
    )
    assert fingerprint().configure_options == "'--with-icu' '--with-lz4'"
    assert differences([fingerprint(), fingerprint(properties=other)], ()) == ()


def test_a_server_that_does_not_tell_its_flags_has_none() -> None:
    silent = fingerprint(properties=replace(PROPERTIES, configuration={}, version="PostgreSQL 17.8 by someone"))
    assert silent.build_flags == ""
    assert silent.configure_options == ""
    assert silent.compiler == "PostgreSQL 17.8 by someone"


def test_an_index_that_differs_or_lacks_is_a_difference() -> None:
    one = fingerprint(indexes={"public.i": "CREATE INDEX i ON t (a)", "public.j": "same"})
    other = fingerprint(indexes={"public.j": "same"})
    (found,) = differences([one, other], ())
    assert found == Difference(kind="index", name="public.i", values=("CREATE INDEX i ON t (a)", ""), is_default=False)
