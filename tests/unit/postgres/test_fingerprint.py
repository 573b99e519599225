from collections.abc import Mapping
from dataclasses import replace

import pytest

from pgversus.errors import DatasetError, ExitCode
from pgversus.postgres.catalog import ServerProperties, SettingValue, TableDigest
from pgversus.postgres.fingerprint import Fingerprint, check_equal_data, differences, table_differences
from pgversus.records.preparation import Difference
from tests.bounded import processor_time

PROPERTIES = ServerProperties(
    version="PostgreSQL 17.8 on x86_64-pc-linux-gnu, compiled by gcc (Debian 7.5.0-3) 7.5.0, 64-bit",
    encoding="UTF8",
    collation="C",
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
        check_equal_data(labels, fingerprints)
    assert caught.value.slug == "dataset-unequal"
    assert caught.value.exit_code is ExitCode.USAGE
    return caught.value


def of_settings(*arms: Mapping[str, SettingValue], factors: tuple[str, ...] = ("server",)) -> tuple[Difference, ...]:
    return differences([fingerprint(settings=arm) for arm in arms], factors)


def test_equal_rows_are_accepted() -> None:
    fingerprints = [fingerprint(), fingerprint(dict(reversed(SAME.items())))]
    check_equal_data(["a", "b"], fingerprints)
    assert fingerprints[0] == fingerprints[1]


def test_an_unequal_table_is_named_with_both_counts() -> None:
    error = refused(fingerprint(), fingerprint({**SAME, "public.t": TableDigest(rows=4, digest="bb")}))
    assert error.found == "public.t: 3 rows on arm0, 4 rows on arm1"
    assert error.where == "arm0 and arm1"


def test_equally_many_rows_with_different_content_are_unequal() -> None:
    error = refused(fingerprint(), fingerprint({**SAME, "public.t": TableDigest(rows=3, digest="bb")}))
    assert error.found == "public.t: 3 rows on both, with different content"


def test_a_table_missing_on_one_arm_is_reported_with_the_arm_that_has_it() -> None:
    fewer = {"public.u": SAME["public.u"]}
    assert refused(fingerprint(), fingerprint(fewer)).found == "public.t exists only on arm0 (3 rows)"
    assert refused(fingerprint(fewer), fingerprint()).found == "public.t exists only on arm1 (3 rows)"


def test_an_empty_table_missing_on_one_arm_is_a_difference() -> None:
    assert refused(fingerprint(), fingerprint({"public.t": SAME["public.t"]})).found == (
        "public.u exists only on arm0 (0 rows)"
    )


def test_every_unequal_table_is_named() -> None:
    error = refused(fingerprint(), fingerprint({}))
    assert error.found == "public.t exists only on arm0 (3 rows); public.u exists only on arm0 (0 rows)"


def test_each_contender_is_compared_with_the_baseline() -> None:
    error = refused(fingerprint(), fingerprint(), fingerprint({**SAME, "public.t": TableDigest(rows=9, digest="")}))
    assert error.where == "arm0 and arm2"


def test_equal_servers_have_no_differences() -> None:
    assert differences([fingerprint(settings={"jit": default("on")})] * 3, ("server",)) == ()


def test_a_difference_between_defaults_is_marked_as_default() -> None:
    (found,) = of_settings({"jit": default("off")}, {"jit": default("on")})
    assert found == Difference(kind="setting", name="jit", values=("off", "on"), is_default=True)


def test_a_setting_that_was_set_is_not_a_default() -> None:
    (found,) = of_settings({"jit": default("off")}, {"jit": chosen("on")})
    assert found == Difference(kind="setting", name="jit", values=("off", "on"), is_default=False)


def test_a_value_computed_by_the_server_counts_as_a_default() -> None:
    computed = SettingValue(value="512", source="override", context="postmaster")
    (found,) = of_settings({"wal_buffers": computed}, {"wal_buffers": default("1024")})
    assert found.is_default


def test_a_value_fixed_by_initdb_is_not_a_default() -> None:
    fixed = SettingValue(value="on", source="override", context="internal")
    (found,) = of_settings({"data_checksums": fixed}, {"data_checksums": default("off")})
    assert not found.is_default


def test_a_set_value_equal_to_the_default_is_not_a_difference() -> None:
    assert of_settings({"jit": default("on")}, {"jit": chosen("on")}) == ()


@pytest.mark.parametrize("factor", ["work_mem", "WORK_MEM"])
def test_a_factor_is_not_a_difference(factor: str) -> None:
    arms = ({"work_mem": chosen("4096"), "jit": chosen("on")}, {"work_mem": chosen("65536"), "jit": chosen("off")})
    assert [found.name for found in of_settings(*arms, factors=(factor,))] == ["jit"]


def test_a_setting_with_capitals_in_its_name_can_be_the_factor() -> None:
    assert of_settings({"DateStyle": chosen("ISO")}, {"DateStyle": chosen("SQL")}, factors=("datestyle",)) == ()


def test_a_setting_missing_in_one_version_is_a_difference_only_if_set_on_the_other() -> None:
    assert of_settings({}, {"io_method": default("worker")}) == ()
    (found,) = of_settings({}, {"io_method": chosen("sync")})
    assert found == Difference(kind="setting", name="io_method", values=("", "sync"), is_default=False)


@pytest.mark.parametrize("name", ["port", "data_directory", "cluster_name", "server_version", "application_name"])
def test_settings_specific_to_each_server_are_not_differences(name: str) -> None:
    assert of_settings({name: chosen("a")}, {name: chosen("b")}) == ()


def test_values_are_in_the_order_of_the_arms() -> None:
    (found,) = of_settings({"a": chosen("1")}, {"a": chosen("2")}, {"a": chosen("1")})
    assert found.values == ("1", "2", "1")


def test_a_different_compiler_or_flags_are_differences_of_the_build() -> None:
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


def configured(text: str | None) -> Fingerprint:
    reported = {} if text is None else {"CONFIGURE": text}
    return fingerprint(properties=replace(PROPERTIES, configuration={"CFLAGS": "-O2", **reported}))


@pytest.mark.parametrize(
    "options",
    [
        "'--prefix=/other' '--with-icu' '--with-lz4'",
        "'--prefix' '/opt/pg' '--with-icu' '--with-lz4' 'CFLAGS=-O2' 'LLVM_CONFIG=/usr/bin/llvm-config'",
        "'--with-lz4' '--with-icu' '--with-perl' '--enable-thread-safety' '--without-readline' '--mandir=/x'",
    ],
)
def test_configure_options_that_do_not_affect_speed_are_not_differences(options: str) -> None:
    assert fingerprint().configure_options == {"--with-icu": "yes", "--with-lz4": "yes"}
    assert differences([fingerprint(), configured(options)], ()) == ()


def test_each_differing_configure_option_is_a_separate_difference() -> None:
    found = differences([fingerprint(), configured("'--with-icu' '--with-openssl' '--with-blocksize=16'")], ())
    assert [(d.kind, d.name, d.values) for d in found] == [
        ("build", "--with-blocksize", ("", "16")),
        ("build", "--with-lz4", ("yes", "")),
        ("build", "--with-openssl", ("", "yes")),
    ]


def test_unreadable_configure_options_are_not_a_difference_and_hide_none() -> None:
    assert differences([fingerprint(), configured(None)], ()) == ()
    (found,) = differences([fingerprint(), configured(None), configured("'--with-icu'")], ())
    assert (found.name, found.values) == ("--with-lz4", ("yes", "not reported", ""))


def test_a_different_encoding_or_collation_is_a_difference_of_the_database() -> None:
    one, other = (
        replace(PROPERTIES, collation="en_US.UTF-8"),
        replace(PROPERTIES, collation="icu en-US", encoding="LATIN1"),
    )
    found = differences([fingerprint(properties=one), fingerprint(properties=other)], ())
    assert [(d.kind, d.name, d.values) for d in found] == [
        ("database", "encoding", ("UTF8", "LATIN1")),
        ("database", "collation", ("en_US.utf8", "icu en-US")),
    ]
    same = replace(PROPERTIES, collation="en_US.utf8")
    assert differences([fingerprint(properties=one), fingerprint(properties=same)], ()) == ()


def test_flags_that_a_server_does_not_report_are_empty() -> None:
    silent = fingerprint(properties=replace(PROPERTIES, configuration={}, version="PostgreSQL 17.8 by someone"))
    assert silent.build_flags == ""
    assert silent.configure_options is None
    assert silent.compiler == "PostgreSQL 17.8 by someone"


def test_a_different_or_missing_index_is_a_difference() -> None:
    one = fingerprint(indexes={"public.i": "CREATE INDEX i ON t (a)", "public.j": "same"})
    other = fingerprint(indexes={"public.j": "same"})
    (found,) = differences([one, other], ())
    assert found == Difference(kind="index", name="public.i", values=("CREATE INDEX i ON t (a)", ""), is_default=False)


def test_options_of_any_length_are_split_quickly() -> None:
    with processor_time():
        found = configured("--with-a='" + "x" * 10_000_000).configure_options
    assert found is not None
    assert list(found) == ["--with-a"]


def test_tables_with_different_rows_are_named_with_the_rows_of_each_arm() -> None:
    other = {**SAME, "public.t": TableDigest(rows=4, digest="bb"), "public.v": TableDigest(rows=1, digest="c")}
    found = table_differences([fingerprint(), fingerprint(other)])
    assert [(one.kind, one.name, one.values) for one in found] == [
        ("table", "public.t", ("3", "4")),
        ("table", "public.v", ("", "1")),
    ]
    assert table_differences([fingerprint(), fingerprint()]) == ()
