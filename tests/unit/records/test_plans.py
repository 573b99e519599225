"""Candidates for restoring an old plan, and their order."""

from pgversus.records.plans import Candidate, PlannerSetting, candidates, memory_candidates

ON = PlannerSetting(value="on", default="on", is_switch=True)
OFF = PlannerSetting(value="off", default="on", is_switch=True)


def amount(value: str, default: str) -> PlannerSetting:
    return PlannerSetting(value=value, default=default, is_switch=False)


def tried(baseline: dict[str, PlannerSetting], contender: dict[str, PlannerSetting]) -> list[str]:
    return [f"{one.why}: {one.text}" for one in candidates(baseline, contender)]


def test_new_switches_come_first_then_differing_settings_then_all_switches() -> None:
    baseline = {
        "enable_sort": ON,
        "enable_hash": ON,
        "enable_never": OFF,
        "hash_mem": amount("1", "1"),
        "work_mem": amount("4", "4"),
        "given": amount("3", "1"),
    }
    contender = {
        "enable_sort": ON,
        "enable_hash": ON,
        "enable_never": OFF,
        "enable_new": ON,
        "enable_new_and_off": OFF,
        "hash_mem": amount("2", "2"),
        "work_mem": amount("8", "4"),
        "given": amount("2", "2"),
        "new_amount": amount("1", "1"),
    }
    assert tried(baseline, contender) == [
        "new switch: enable_new = off",
        "changed default: hash_mem = 1",
        "other value: work_mem = 4",
        "other value: given = 3",
        "switch: enable_sort = off",
        "switch: enable_hash = off",
        "switch: enable_sort = off, enable_hash = off",
    ]


def test_equal_servers_have_only_switches() -> None:
    assert tried({"jit": ON}, {"jit": ON}) == []
    assert tried({"enable_sort": ON}, {"enable_sort": ON}) == ["switch: enable_sort = off"]


def test_candidates_are_plain_values() -> None:
    assert isinstance(next(candidates({}, {"enable_x": ON})), Candidate)


def test_memory_limits_go_down_to_their_minimum_with_hashes_first() -> None:
    settings = {"hash_mem_multiplier": amount("2", "2"), "work_mem": amount("100", "4096")}
    words = [one.text for one in memory_candidates(settings, is_less=True)]
    assert words[:3] == ["hash_mem_multiplier = 1.8", "hash_mem_multiplier = 1.6", "hash_mem_multiplier = 1.4"]
    assert words[-3:] == ["work_mem = 90", "work_mem = 80", "work_mem = 70"]
    more = [one.text for one in memory_candidates(settings, is_less=False)]
    assert more[0] == "hash_mem_multiplier = 2.2"
    assert more[-1] == "work_mem = 400"
    assert list(memory_candidates({}, is_less=True)) == []
