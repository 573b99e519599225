"""What a host told of itself that bears on a measurement, named as people read it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from pgversus.text.translation import later, tell
from pgversus.text.units import size

_COPIES = {"reflink": later("by reflink"), "copy": later("in full")}


def _copies_words(copies: Any) -> str:
    return tell(_COPIES[copies]) if copies in _COPIES else str(copies)


_FACTS: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "cpu_model": (later("processor"), str),
    "cpus_usable": (later("processors usable"), str),
    "memory_bytes": (later("memory"), size),
    "kernel": (later("kernel"), str),
    "machine": (later("architecture"), str),
    "libc": (later("C library"), str),
    "file_system": (later("file system"), str),
    "mount_options": (later("mount options"), str),
    "governor": (later("frequency governor"), str),
    "transparent_hugepage": (later("transparent huge pages"), str),
    "copies": (later("way of copying"), _copies_words),
}


class HostFact(NamedTuple):
    """A row of a table of facts."""

    key: str
    """As it is stored."""
    name: str
    """In the language of now."""
    text: str


def host_facts(host: Mapping[str, Any]) -> Iterator[HostFact]:
    """Those that the host told, in the order of a table; nothing of a host that told nothing."""
    for key, (name, shown) in _FACTS.items():
        value = host.get(key)
        if value not in (None, ""):
            yield HostFact(key, tell(name), shown(value))
