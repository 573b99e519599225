"""Changes between the study of earlier results and the current one, as text."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from pgversus.store.codec import CONTEXT, ContextFact
from pgversus.study.study import Context

# Allowed changes: more time never invalidates a result (docs/statistics.md), and a setup file is identified by its
# hash, not its path. Rewrites do not take part in any arm.
_MAY_CHANGE = re.compile(
    r"budget_s|dataset\.((setup_files|prepare)\.\d+|restore)\.(path|size_bytes)|workload\.rewrite(\..*)?"
)
# Implied changes: each of these changes only together with a related value or its list, which is reported.
_IMPLIED = re.compile(
    r"(.*\.)?length|window_kind|window_is_given|slice_s|rounds_are_given|rounds_per_session|warm_up_is_given"
)
# The names in study files and options, if they differ from those in the code.
_WORDS = {
    "window_s": "window in s",
    "window_transactions": "window in tx",
    "warm_up_s": "warm_up in s",
    "rounds": "windows",
    "fixed_blocks": "blocks",
    "dataset.pgbench_scale": "dataset.scale",
    "dataset.setup_files": "dataset.setup",
    "workload.query_mode": "workload.protocol",
}
_WORDED = re.compile("|".join(rf"^{re.escape(name)}(?![a-z_])" for name in _WORDS))
_MOST_LETTERS = 60

_Change = tuple[str, str, str]
"""Name, earlier value, current value."""


def changes_between(earlier: Sequence[Context], now: Sequence[Context]) -> Iterator[str]:
    """Yield each change once, with both values, and with its contexts and arms unless it holds for all."""
    before, after = {one.label: one for one in earlier}, {one.label: one for one in now}
    if len(before) != len(after):
        yield f"{len(before)} contexts, now {len(after)}"
    if gone := [label for label in before if label not in after]:
        yield f"removed: {_listed(gone)}"
    if new := [label for label in after if label not in before]:
        yield f"added: {_listed(new)}"
    both = [label for label in before if label in after]
    if both != [label for label in after if label in before]:
        yield "contexts in a different order"
    found: dict[_Change, list[str]] = {}
    for label in both:
        for change in _changes_of_context(before[label], after[label]):
            found.setdefault(change, []).append(label)
    for (what, was, is_now), labels in found.items():
        yield f"{what}: {was}, now {is_now}{_where(labels, len(both))}"


def _listed(labels: list[str]) -> str:
    shown = ", ".join(label or "the only context" for label in labels[:3])
    return f"{shown} and {len(labels) - 3} more" if len(labels) > 3 else shown  # noqa: PLR2004 - one line


def _where(labels: list[str], contexts: int) -> str:
    if len(labels) == contexts:
        return ""
    return f" ({labels[0]})" if len(labels) == 1 else f" (in {len(labels)} contexts of {contexts})"


def _changes_of_context(earlier: Context, now: Context) -> Iterator[_Change]:
    if replace(earlier, number=now.number) == now:
        return
    before, after = _fact(earlier), _fact(now)
    arms_before, arms_after = before.pop("arms"), after.pop("arms")
    design_before, design_after = before.pop("design"), after.pop("design")
    yield from _differences(before | design_before, after | design_after)
    labels, labels_now = [arm["label"] for arm in arms_before], [arm["label"] for arm in arms_after]
    if labels != labels_now:
        yield "arms", ", ".join(labels), ", ".join(labels_now)
        return
    of_arms = [list(_differences(*pair)) for pair in zip(arms_before, arms_after, strict=True)]
    for change in dict.fromkeys(chain.from_iterable(of_arms)):
        have = [label for label, changes in zip(labels, of_arms, strict=True) if change in changes]
        what, was, is_now = change
        yield (what if len(have) == len(labels) else f"{what} of {', '.join(have)}"), was, is_now


def _fact(context: Context) -> dict[str, Any]:
    fact = CONTEXT.dump_python(ContextFact(levels=(), comparison=context.comparison), mode="json")
    comparison: dict[str, Any] = fact["comparison"]
    return comparison


def _differences(before: dict[str, Any], now: dict[str, Any]) -> Iterator[_Change]:
    had, has = dict(_leaves(before, "")), dict(_leaves(now, ""))
    differ = [key for key in {**had, **has} if had.get(key) != has.get(key) and not _MAY_CHANGE.fullmatch(key)]
    # If only implied changes remain, report those.
    for key in [key for key in differ if not _IMPLIED.fullmatch(key)] or differ:
        yield _WORDED.sub(lambda name: _WORDS[name[0]], key), _shown(had.get(key)), _shown(has.get(key))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield path and value of every scalar; items with a name are identified by it, not by position."""
    match value:
        case dict():
            for key, inner in value.items():
                yield from _leaves(inner, f"{path}.{key}" if path else str(key))
        case [{"name": _, "value": _}, *_]:
            for one in value:
                yield f"{path}.{one['name']}", one["value"]
        case [[str(), str()], *_]:
            for name, inner in value:
                yield f"{path}.{name}", inner
        case list():
            yield f"{path}.length", len(value)
            for number, inner in enumerate(value, start=1):
                yield from _leaves(inner, f"{path}.{number}")
        case _:
            yield path, value


def _shown(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return f"{text[:_MOST_LETTERS]}..." if len(text) > _MOST_LETTERS else text
