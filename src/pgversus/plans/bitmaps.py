"""Bitmap index scans, as part of the heap scan that they are made for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_HEAP = "Bitmap Heap Scan"
_INDEX = "Bitmap Index Scan"
_PARTS = (_INDEX, "BitmapAnd", "BitmapOr")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bitmap:
    """How a heap scan finds its blocks."""

    indexes: str
    """`a_idx`, or `BitmapOr(a_idx, b_idx)`."""
    conditions: tuple[str, ...]
    """Of each index, as EXPLAIN has them."""


def bitmap_below(raw: Mapping[str, Any]) -> Bitmap | None:
    """Of a bitmap heap scan; None for every other node."""
    if raw["Node Type"] != _HEAP:
        return None
    parts = filter(is_part, raw.get("Plans", []))
    conditions: list[str] = []
    indexes = ", ".join([_indexes(part, conditions) for part in parts])
    return Bitmap(indexes=indexes, conditions=tuple(conditions))


def is_part(raw: Mapping[str, Any]) -> bool:
    """Whether a node below a bitmap heap scan is one of those that make its bitmap."""
    return raw["Node Type"] in _PARTS


def _indexes(raw: Mapping[str, Any], conditions: list[str]) -> str:
    if raw["Node Type"] == _INDEX:
        if "Index Cond" in raw:
            conditions.append(str(raw["Index Cond"]))
        return str(raw.get("Index Name", ""))
    inner = ", ".join([_indexes(part, conditions) for part in raw.get("Plans", [])])
    return f"{raw['Node Type']}({inner})"
