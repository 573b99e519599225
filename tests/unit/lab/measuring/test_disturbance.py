"""What the host tells of others is what a round is measured again for, and nothing else is."""

import pytest

from pgversus.lab.measuring.disturbance import is_disturbed

OURS = {
    "server_cpu_user_s": 0.7,
    "server_cpu_system_s": 0.2,
    "client_cpu_s": 0.1,
    "client_cpu_user_s": 0.05,
    "host_cpu_s": 1.0,
    "host_cpu_user_s": 0.75,
    "host_steal_s": 0.0,
}


def test_a_quiet_host_is_not_disturbed() -> None:
    assert not is_disturbed(OURS, 1.0, 2)


@pytest.mark.parametrize(
    ("name", "too_much", "bearable"), [("host_cpu_user_s", 0.96, 0.94), ("host_steal_s", 0.11, 0.09)]
)
def test_others_beyond_their_share_of_two_processors_disturb(name: str, too_much: float, bearable: float) -> None:
    assert is_disturbed(OURS | {name: too_much}, 1.0, 2)
    assert not is_disturbed(OURS | {name: bearable}, 1.0, 2)
    assert not is_disturbed(OURS | {name: too_much}, 2.0, 2)


def test_where_nobody_tells_nothing_is_blamed_on_others() -> None:
    assert not is_disturbed({}, 1.0, 2)
    assert not is_disturbed({"host_cpu_user_s": 2.0}, 1.0, 2), "it may all have been ours"


def test_what_threads_of_the_kernel_do_for_an_arm_is_not_blamed_on_others() -> None:
    # Encrypting and writing back what a server has written: work of the host, and of no process of the server.
    assert not is_disturbed(OURS | {"host_cpu_s": 2.0}, 1.0, 2)


def test_in_a_short_window_a_few_steps_of_the_clocks_are_no_sign() -> None:
    assert not is_disturbed(OURS | {"host_cpu_user_s": 0.79, "host_steal_s": 0.04}, 0.05, 2)
    assert is_disturbed(OURS | {"host_steal_s": 0.06}, 0.05, 2)
