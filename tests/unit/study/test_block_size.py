"""Arms with unusual block sizes get defaults of the usual size in bytes."""

from collections.abc import Mapping

import pytest

from pgversus.errors import ExitCode, StudyError
from pgversus.study.build_options import BuildOptions
from pgversus.study.comparison import Arm, with_equal_bytes
from pgversus.study.dataset import Dataset
from pgversus.study.servers import Release, RunningServer, ServerName, SourceBuild
from pgversus.study.settings import Setting
from pgversus.study.workload import PgbenchWorkload, Script

SEVENTEEN = Release(major=17, minor=None)
WORKLOAD = PgbenchWorkload(scripts=(Script(name="select-only"),), clients=1)


def built(block_kb: int = 8, wal_kb: int = 8) -> SourceBuild:
    return SourceBuild(
        source=SEVENTEEN, options=BuildOptions(block_size_kb=block_kb, wal_block_size_kb=wal_kb, cassert=True)
    )


def arm(server: ServerName, given: Mapping[str, str] | None = None) -> Arm:
    settings = tuple(Setting(name=name, value=value) for name, value in (given or {}).items())
    return Arm(index=1, label="the one", server=server, settings=settings, workload=WORKLOAD, dataset=Dataset())


def added(server: ServerName, given: Mapping[str, str] | None = None) -> dict[str, str]:
    before = arm(server, given)
    (after,) = with_equal_bytes([before])
    assert after.settings[: len(before.settings)] == before.settings, "what was given stays as it is"
    return {setting.name: setting.value for setting in after.settings[len(before.settings) :]}


def test_defaults_in_blocks_keep_their_size_in_bytes() -> None:
    assert added(built(block_kb=32)) == {
        "effective_cache_size": "4194304kB",
        "temp_buffers": "8192kB",
        "bgwriter_flush_after": "512kB",
        "checkpoint_flush_after": "256kB",
        "bgwriter_lru_maxpages": "25",
        "wal_buffers": "4096kB",
    }


@pytest.mark.parametrize("server", [SEVENTEEN, built(), SourceBuild(source=SEVENTEEN), RunningServer(uri="x")])
def test_an_arm_with_default_blocks_is_unchanged(server: ServerName) -> None:
    before = (arm(server, {"shared_buffers": "16384"}), arm(server))
    assert with_equal_bytes(before) == before


def test_wal_block_size_only_affects_wal_buffers() -> None:
    assert added(built(wal_kb=32)) == {"wal_buffers": "4096kB"}


def test_each_arm_is_adjusted_separately() -> None:
    arms = with_equal_bytes([arm(SEVENTEEN), arm(built(block_kb=4)), arm(built())])
    assert [len(one.settings) for one in arms] == [0, 6, 0]


@pytest.mark.parametrize(
    ("shared_buffers", "wal_buffers"),
    [
        ("1GB", "16384kB"),
        ("64MB", "2048kB"),
        (" 0.25 GB ", "8192kB"),
        ("1TB", "16384kB"),
        ("131072kB", "4096kB"),
        ("16384", "8192kB"),
    ],
)
def test_wal_buffers_follow_shared_buffers_up_to_one_segment(shared_buffers: str, wal_buffers: str) -> None:
    assert added(built(block_kb=16), {"shared_buffers": shared_buffers})["wal_buffers"] == wal_buffers


def test_flush_after_is_limited_to_the_maximum_of_the_server() -> None:
    """The maximum is 256 blocks: 256 kB with blocks of 1 kB."""
    found = added(built(block_kb=1))
    assert (found["bgwriter_flush_after"], found["checkpoint_flush_after"]) == ("256kB", "256kB")


@pytest.mark.parametrize("name", ["temp_buffers", "Temp_Buffers"])
def test_settings_of_the_user_are_kept(name: str) -> None:
    found = added(built(block_kb=16), {name: "3MB", "wal_buffers": "-1"})
    assert "temp_buffers" not in found
    assert "wal_buffers" not in found
    assert "effective_cache_size" in found


@pytest.mark.parametrize(
    ("server", "name"),
    [
        (built(block_kb=16), "shared_buffers"),
        (built(block_kb=16), "Effective_Cache_Size"),
        (built(block_kb=16), "min_parallel_table_scan_size"),
        (built(wal_kb=16), "wal_buffers"),
    ],
)
def test_a_number_of_blocks_is_rejected_with_a_size_suggestion(server: ServerName, name: str) -> None:
    with pytest.raises(StudyError) as caught:
        with_equal_bytes([arm(server, {name: " 2048 "}), arm(SEVENTEEN)])
    error = caught.value
    assert (error.slug, error.exit_code) == ("study-setting-in-blocks", ExitCode.USAGE)
    assert error.where == f"{name.lower()} =  2048 , on the one"
    assert error.found == " 2048 "
    assert "a size with a unit" in error.expected
    assert error.to_do == f"{name.lower()} = 16384kB, if you meant blocks of 8 kB"


def test_a_number_of_blocks_is_accepted_with_equal_block_sizes() -> None:
    arms = [arm(built(block_kb=16), {"shared_buffers": value}) for value in ("1024", "2048")]
    assert [one.settings[0].value for one in with_equal_bytes(arms)] == ["1024", "2048"]


@pytest.mark.parametrize(
    ("server", "given"),
    [
        (built(wal_kb=16), {"shared_buffers": "16384"}),
        (built(block_kb=16), {"wal_buffers": "512"}),
        (built(block_kb=16), {"max_connections": "100", "work_mem": "4096"}),
        (built(block_kb=16), {"backend_flush_after": "0"}),
    ],
)
def test_a_number_is_accepted_unless_it_counts_unequal_blocks(server: ServerName, given: dict[str, str]) -> None:
    first, _ = with_equal_bytes([arm(server, given), arm(SEVENTEEN, given)])
    assert {setting.name: setting.value for setting in first.settings}.items() >= given.items()
