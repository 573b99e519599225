"""Changes between plans, in Japanese. Names of operators and headings stay as EXPLAIN prints them."""

from collections.abc import Callable, Mapping

from pgversus.plans.changes import Change, Kind
from pgversus.plans.levels import Level
from pgversus.plans.sentences.numbers import EXACT, number

LEVELS = {
    Level.OPERATORS: "別の実行計画（演算子が異なる）",
    Level.CONDITIONS: "別の実行計画（演算子は同じ、条件またはキーが異なる）",
    Level.BEHAVIOUR: "同じ実行計画（実行時の挙動が異なる）",
    Level.WORK: "同じ実行計画（処理量が異なる）",
    Level.IDENTICAL: "同じ実行計画",
}


def sentence(change: Change) -> str:
    """One change."""
    return _SENTENCES[change.kind](change)


def more(count: int) -> str:
    """There are so many more of the kind that was just told."""
    return f"…ほか同様の変化 {number(count)} 件"


def _ran(change: Change) -> str:
    if change.was is None or change.now is None:
        return ""
    return f"（実行回数 {number(change.was)} → {number(change.now)}）"


def _with_details(change: Change) -> str:
    return f"{change.node}（{'; '.join(change.details)}）" if change.details else change.node


def _estimate(text: object) -> str:
    expected, actual, off = str(text).split("/")
    came = f"見積り {number(float(expected))} 行・実際 {number(float(actual))} 行"
    return came if float(off) < EXACT else f"{came}（{number(float(off))} 倍のずれ）"


def _keys(change: Change) -> str:
    if not change.was:
        return f"{change.node} に {change.name} が付いた: {change.now}"
    if not change.now:
        return f"{change.node} の {change.name}（{change.was}）がなくなった"
    return f"{change.node} の {change.name}: {change.was} → {change.now}"


_SENTENCES: Mapping[Kind, Callable[[Change], str]] = {
    Kind.SUBPLAN_PULLED_UP: lambda c: f"{c.node} に対する {c.name} が主計画に引き上げられた{_ran(c)}",
    Kind.SUBPLAN_PUSHED_DOWN: lambda c: f"{c.node} は主計画ではなく {c.name} で読まれるようになった{_ran(c)}",
    Kind.JOIN: lambda c: f"結合方式: {c.was} → {c.now}",
    Kind.ACCESS: lambda c: f"アクセス方法: {c.was} → {c.now}",
    Kind.OPERATOR: lambda c: f"{c.was} → {c.now}",
    Kind.ORDER_FROM_INDEX: lambda c: f"{_with_details(c)} がなくなり、順序はインデックス {c.name} から得られる",
    Kind.ADDED: lambda c: f"追加: {_with_details(c)}",
    Kind.REMOVED: lambda c: f"消滅: {_with_details(c)}",
    Kind.NOT_READ: lambda c: f"{c.name} は読まれなくなった（以前は {_with_details(c)}）",
    Kind.READ: lambda c: f"{c.name} が読まれるようになった（{_with_details(c)}）",
    Kind.ARRANGEMENT: lambda _: "同じ演算子が別の順序で並んでいる",
    Kind.CONDITION_MOVED: lambda c: f"条件 {c.name} が移動した: {c.was} → {c.now}",
    Kind.CONDITION_GONE: lambda c: f"{c.node} の {c.name} {c.was} がなくなった",
    Kind.CONDITION_NEW: lambda c: f"{c.node} に {c.name} {c.now} が加わった",
    Kind.KEY_ORDER: lambda c: f"{c.node} の {c.name}: {c.was} → {c.now}（同じ列、順序が異なる）",
    Kind.KEYS: _keys,
    Kind.SPILL_GONE: lambda c: f"{c.node} は一時ファイルを書かなくなった",
    Kind.SPILL_NEW: lambda c: f"{c.node} が一時ファイルに書き出すようになった",
    Kind.FACT: lambda c: f"{c.node} の {c.name}: {c.was} → {c.now}",
    Kind.LOOPS: lambda c: f"{c.node} の実行回数: {number(c.was)} → {number(c.now)}",
    Kind.ROWS: lambda c: f"{c.node} の行数: {number(c.was)} → {number(c.now)}",
    Kind.ROWS_REMOVED: lambda c: f"{c.node} が読んで捨てた行: {number(c.was)} → {number(c.now)}",
    Kind.ESTIMATE: lambda c: f"{c.node} の行数: {_estimate(c.was)} → {_estimate(c.now)}",
    Kind.BLOCKS: lambda c: f"読んだブロックの合計（バッファを含む）: {number(c.was)} → {number(c.now)}",
    Kind.JIT: lambda c: f"JIT でコンパイルされた関数: {number(c.was)} → {number(c.now)}",
}
