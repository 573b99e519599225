import os
import subprocess
from collections.abc import Callable

import pytest

from pgversus.errors import HostError
from pgversus.host.processors import Processors, split_processors, started_on

Usable = Callable[[int], None]


@pytest.fixture
def usable(monkeypatch: pytest.MonkeyPatch) -> Usable:
    return lambda count: monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(count)))


@pytest.mark.parametrize(
    ("count", "pin", "clients", "servers"),
    [
        (1, "auto", (), ()),
        (3, "auto", (), ()),
        (4, "auto", (0,), (1, 2, 3)),
        (8, "auto", (0, 1), (2, 3, 4, 5, 6, 7)),
        (8, "off", (), ()),
        (2, "0", (0,), (1,)),
        (4, "1-2", (1, 2), (0, 3)),
    ],
)
def test_the_client_and_the_servers_get_dedicated_processors(
    usable: Usable, count: int, pin: str, clients: tuple[int, ...], servers: tuple[int, ...]
) -> None:
    usable(count)
    assert split_processors(pin) == Processors(clients=clients, servers=servers)


@pytest.mark.parametrize(("count", "pin"), [(1, "0"), (2, "0-1"), (2, "2"), (4, "3,9")])
def test_unavailable_processors_and_a_list_of_all_are_rejected(usable: Usable, count: int, pin: str) -> None:
    usable(count)
    with pytest.raises(HostError) as refused:
        split_processors(pin)
    assert refused.value.slug == "host-processors"


def test_programs_are_pinned_and_our_own_affinity_is_restored() -> None:
    before = os.sched_getaffinity(0)
    one = min(before)
    with started_on([one]):
        allowed = subprocess.run(
            ["/bin/grep", "Cpus_allowed_list", "/proc/self/status"], capture_output=True, check=True
        )
    assert allowed.stdout.split() == [b"Cpus_allowed_list:", str(one).encode()]
    assert os.sched_getaffinity(0) == before
    with started_on([]):
        assert os.sched_getaffinity(0) == before
