"""Which contexts of a study take turns, and which wait until others have ended: what lies on disk has an end.

Contexts that take turns have all their data on disk at once. Where that would be too much, a study is measured in parts
one after another, and the data of one part go before those of the next are loaded.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import chain

from pgversus.study.disk import disk_bytes
from pgversus.study.study import Context

MOST_AT_ONCE_BYTES = 20e9
"""A part has no more, unless the data of a single context have."""

_Family = list[Context]
# On the same data.


def parts_of(contexts: Sequence[Context], most_bytes: float = MOST_AT_ONCE_BYTES) -> list[list[Context]]:
    """The contexts of each part, in their order; one part where all data fit, none where there is no context.

    Those on the same data are in the same part, and those that begin with the same loaded data stand beside each other.
    It follows from the study alone, so that a resumed one has the same parts.
    """
    if disk_bytes(contexts) <= most_bytes:
        return [list(contexts)] if contexts else []
    parts: list[list[Context]] = []
    for family in _families(contexts):
        if parts and disk_bytes([*parts[-1], *family]) <= most_bytes:
            parts[-1] += family
        else:
            parts.append(list(family))
    return [sorted(part, key=lambda context: context.number) for part in parts]


def _families(contexts: Sequence[Context]) -> Iterable[_Family]:
    families: defaultdict[Hashable, defaultdict[Hashable, _Family]] = defaultdict(lambda: defaultdict(list))
    for context in contexts:
        data = tuple(arm.dataset for arm in context.comparison.arms)
        loaded = tuple(dataset.loaded for dataset in data)
        families[loaded][data].append(context)
    return chain.from_iterable(same_loaded.values() for same_loaded in families.values())
