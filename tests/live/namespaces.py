"""Network namespaces: hosts as far as connections go, on a network that exists inside of them only."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

_SWITCH = "switch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Namespaces connected by a switch, which is a bridge in a namespace of its own."""

    prefix: str
    """Of the names of all namespaces."""
    hosts: Sequence[str]

    def address(self, host: str) -> str:
        return f"10.77.0.{1 + self.hosts.index(host)}"

    def inside(self, host: str) -> tuple[str, ...]:
        """The command that runs a program on a host."""
        return "ip", "netns", "exec", self.namespace(host)

    def set_link(self, host: str, state: str) -> None:
        """Cut the connection of a host with all others, or restore it. state: up or down."""
        self.change("link", "set", host, state)

    def change(self, *arguments: str, of: str = _SWITCH) -> None:
        _ip("-n", self.namespace(of), *arguments)

    def namespace(self, host: str) -> str:
        return f"{self.prefix}-{host}"


@contextmanager
def connected_namespaces(hosts: Sequence[str]) -> Iterator[Network]:
    """Namespaces with these names. Needs root."""
    network = Network(prefix=f"pgversus-test-{os.getpid()}", hosts=hosts)
    made = []
    try:
        for name in (_SWITCH, *hosts):
            _ip("netns", "add", network.namespace(name))
            made.append(name)
            network.change("link", "set", "lo", "up", of=name)
        network.change("link", "add", "bridge", "type", "bridge")
        network.change("link", "set", "bridge", "up")
        for name in hosts:
            network.change(
                "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", network.namespace(name)
            )
            network.change("link", "set", name, "master", "bridge", "up")
            network.change("address", "add", f"{network.address(name)}/24", "dev", "eth0", of=name)
            network.change("link", "set", "eth0", "up", of=name)
        yield network
    finally:
        for name in made:
            _ip("netns", "delete", network.namespace(name))


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, stdin=subprocess.DEVNULL)
