"""How the rows that a statement returns or writes can be compared: in order, as a multiset, by number, or not at all.

All of this is read from its plan. An order counts as total only if the statement has an ORDER BY and the plan proves
that its keys identify a row. The order of an index scan alone proves nothing: the same statement may get another plan
on another server.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pgversus.plans.nodes import raw_nodes
from pgversus.plans.order import column_name, key_expression
from pgversus.plans.plan_keys import JOINS, KEEP_ORDER, SIDES, SORTED, PlanKeys, Raw, below, chain
from pgversus.records.plans import Uncertainty, UncertaintyKind
from pgversus.text.sql import NAME, outermost, quoted_name, quoted_parts, unquoted_name, without_literals

FunctionName = tuple[str, str]
"""Schema and name; the schema is empty if EXPLAIN prints none."""

_ORDER_BY = re.compile(r"\bORDER\s+BY\b", re.IGNORECASE)
_PLAIN = re.compile(r'"(?!(?:asc|by|desc|distinct|fetch|for|limit|offset|on|order|ties|with)")[a-z_][a-z0-9_]*"')
"""A name with quotes, which is none of the words that are searched for below."""
_END_OF_ORDER = re.compile(r"\b(?:LIMIT|OFFSET|FETCH|FOR)\b|;", re.IGNORECASE)
_ITEM = re.compile(r"([\w$]+(?:\.[\w$]+)*)(?:\s+(?:ASC|DESC))?(?:\s+NULLS\s+(?:FIRST|LAST))?", re.IGNORECASE)
_LIMIT = re.compile(r"\b(LIMIT(?:\s+(\d+))?|FETCH|OFFSET)\b", re.IGNORECASE)
_OFFSET = re.compile(r"\bOFFSET\b", re.IGNORECASE)
_WITH_TIES = re.compile(r"\bWITH\s+TIES\b", re.IGNORECASE)

_CALL = re.compile(rf"(?<![\w$\".])(?:({NAME})\.)?({NAME})\(")
_STRING = re.compile(r"'(?:[^']++|'')*+'")
_CLOCK = re.compile(r"\b(?:CURRENT_DATE|CURRENT_TIME|CURRENT_TIMESTAMP|LOCALTIME|LOCALTIMESTAMP)\b")
_CLOCK_FUNCTIONS = ("now", "statement_timestamp", "transaction_timestamp")
"""Stable within a transaction, but not between two servers."""

_DISTINCT_ON = re.compile(r"\bDISTINCT\s+ON\b", re.IGNORECASE)
_OF_POSITION = frozenset({"row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value"})
"""Window functions whose results differ between rows with equal keys."""
_IN_ORDER = re.compile(
    r"\b(array_agg|string_agg|xmlagg|any_value|json_(?:array|object)agg"
    r"|jsonb?_(?:object_)?agg(?:_strict|_unique|_unique_strict)?)\(",
    re.IGNORECASE,
)
_SUM = re.compile(r"sum|avg|stddev(?:_pop|_samp)?|variance|var_pop|var_samp|corr|covar_pop|covar_samp|regr_\w+")
_CATALOGS = ("pg_catalog", "information_schema")
_OF_SERVER = re.compile(r"pg_(?!typeof$)|version$|txid_|inet_server_")
"""Functions of a server's state, statistics and files."""
_MOMENT = re.compile(r"'(?:now|today|tomorrow|yesterday)'")
_ROW_IDENTITY = re.compile(r"(?:.*\.)?(?:ctid|tableoid)")
_SYSTEM_COLUMN = re.compile(r"(?<![\w$\"])(?:ctid|xmin|xmax|cmin|cmax|tableoid)(?![\w$\"(])")

_MODIFY_TABLE = "ModifyTable"
_MAY_JOIN = ("Foreign Scan", "Custom Scan")
_INDEX_SCANS = ("Index Scan", "Index Only Scan")


@dataclass(frozen=True, kw_only=True)
class StatementRows:
    """The rows of one statement on one server, before it runs."""

    statement: str
    columns: Sequence[str]
    """The names of the returned columns, in order; empty if unknown."""
    root: Raw
    """The plan, with VERBOSE."""
    unique_keys: Mapping[tuple[str, str], Sequence[tuple[str, ...]]]
    """By schema and table: each set of columns without nulls that identifies a row."""
    index_keys: Mapping[str, tuple[str, ...]]
    """The keys of each ordered index by its name."""
    has_floats: bool = False
    """Whether a returned or written column may be a floating-point number."""

    @property
    def is_ordered(self) -> bool:
        """Whether the statement orders its rows totally: ORDER BY leaves no ties, whatever the data."""
        return bool(self._order) and self._keys.is_identified(self.root, self._ordered)

    @property
    def functions(self) -> frozenset[FunctionName]:
        """All functions that the plan calls, in views and inlined functions as well."""
        return functions_in(self.root) | frozenset(_called(self._hidden_text))

    def uncertainties(self, volatile: Collection[FunctionName], rows: int) -> tuple[Uncertainty, ...]:
        """Return why the same data may give different rows; empty if no reason is known.

        volatile: those of `functions` that are volatile. rows: the number of rows that the statement returned.
        """
        names = sorted(f"{schema}.{name}()" if schema else f"{name}()" for schema, name in volatile)
        return (
            *(Uncertainty(kind=UncertaintyKind.VOLATILE, name=name) for name in names),
            *(Uncertainty(kind=UncertaintyKind.CLOCK, name=name) for name in sorted(self._clocks)),
            *(Uncertainty(kind=UncertaintyKind.SERVER, name=name) for name in sorted(self._of_server)),
            *self._samples(),
            *self._limits(rows),
            *self._distinct_on(),
            *self._window_ties(),
            *self._orders_of_aggregates(),
            *self._sums_of_floats(),
        )

    @property
    def has_one_source_row(self) -> bool:
        """Whether the plan proves that at most one row provides the values of each row that the statement writes.

        UPDATE ... FROM uses any one of several matching rows, and ON CONFLICT depends on the order of the rows. Those
        that MERGE writes can be returned only since 17.
        """
        operation = self.root.get("Operation")
        if operation == "Insert":
            return not self._has_hidden_actions
        if self.root["Node Type"] != _MODIFY_TABLE or operation not in ("Update", "Delete"):
            return False
        if not any(node["Node Type"] in (*JOINS, *_MAY_JOIN) for node in raw_nodes(self.root)):
            return True
        # Up to 13, the node below is a member.
        sources = [one for one in self.root.get("Plans", ()) if one.get("Parent Relationship") in (*SIDES, "Member")]
        table = str(self.root.get("Schema")), str(self.root.get("Relation Name"))
        alias = quoted_name(str(self.root.get("Alias")))
        keys = [{f"{alias}.{quoted_name(column)}" for column in key} for key in self.unique_keys.get(table, ())]
        return any(bool(sources) and all(self._keys.is_identified(one, key) for one in sources) for key in keys)

    @property
    def _has_hidden_actions(self) -> bool:
        """Whether the statement has actions whose expressions EXPLAIN does not print: MERGE, ON CONFLICT."""
        return any(node.get("Operation") == "Merge" or "Conflict Resolution" in node for node in raw_nodes(self.root))

    @property
    def _hidden_text(self) -> str:
        """The text of a statement with such actions, without quoted parts; empty for any other."""
        return without_literals(self.statement).lower() if self._has_hidden_actions else ""

    @property
    def _clocks(self) -> set[str]:
        keywords = {name for text in _expressions(self.root) for name in _CLOCK.findall(text)}
        keywords |= set(_CLOCK.findall(self._hidden_text.upper()))
        # Defaults of tables that were created on 9.6 or older.
        literals = {literal for text in _texts(self.root) for literal in _MOMENT.findall(text)}
        calls = {f"{name}()" for schema, name in self.functions if not schema and name in _CLOCK_FUNCTIONS}
        return keywords | literals | calls

    @property
    def _of_server(self) -> set[str]:
        """Catalogs, functions and system columns whose values differ between servers with equal data."""
        nodes = list(raw_nodes(self.root))
        read = [(one.get("Schema"), str(one["Relation Name"])) for one in nodes if "Relation Name" in one]
        catalogs = {name for schema, name in read if schema in _CATALOGS}
        called = {name for _, name in self.functions} | {str(one.get("Function Name", "")) for one in nodes}
        functions = {f"{name}()" for name in called if _OF_SERVER.match(name)}
        outputs = [*self._outputs, *self._written_outputs]
        columns = {name for text in outputs for name in _SYSTEM_COLUMN.findall(_STRING.sub("", text))}
        return catalogs | functions | columns

    def _samples(self) -> Iterator[Uncertainty]:
        if any(node["Node Type"] == "Sample Scan" for node in raw_nodes(self.root)):
            yield Uncertainty(kind=UncertaintyKind.SAMPLE)

    def _limits(self, rows: int) -> Iterator[Uncertainty]:
        """Yield LIMITs that may choose among rows: without an order, or with ties."""
        clause = _LIMIT.search(self._text)
        outer = next((node for node in chain(self.root, KEEP_ORDER) if node["Node Type"] == "Limit"), None)
        if clause is None:
            outer = None
        elif outer is not None and not self._returned_all(clause[2], rows) and not self._limit_chooses_one_way:
            kind = UncertaintyKind.LIMIT_WITH_TIES if self._order else UncertaintyKind.LIMIT
            yield Uncertainty(kind=kind, name=" ".join(clause[1].upper().split()))
        inner = (node for node in raw_nodes(self.root) if node["Node Type"] == "Limit" and node is not outer)
        if not all(map(self._inner_limit_chooses_one_way, inner)):
            yield Uncertainty(kind=UncertaintyKind.INNER_LIMIT)

    def _distinct_on(self) -> Iterator[Uncertainty]:
        """Yield DISTINCT ON if several rows of a group may be the first one."""
        is_in_text = _DISTINCT_ON.search(without_literals(self.statement)) is not None
        for node in raw_nodes(self.root):
            if node["Node Type"] == "Unique" and not all(map(self._keys.has_total_order, below(node))):
                keys = self._keys.sort_keys(node)
                outputs = set(self._keys.spelled(node, "Output"))
                # Without ON, all outputs are keys.
                if is_in_text if keys is None else not outputs <= keys:
                    yield Uncertainty(kind=UncertaintyKind.DISTINCT_ON)
                    return

    def _window_ties(self) -> Iterator[Uncertainty]:
        """Yield the window functions whose results depend on the order of ties."""
        names = sorted({name for _, name in self.functions} & _OF_POSITION)
        windows = [node for node in raw_nodes(self.root) if node["Node Type"] == "WindowAgg"]
        if names and not all(self._keys.has_total_order(one) for node in windows for one in below(node)):
            yield from (Uncertainty(kind=UncertaintyKind.WINDOW_TIES, name=f"{name}()") for name in names)

    def _orders_of_aggregates(self) -> Iterator[Uncertainty]:
        """Yield the aggregates that keep the order of their input and are called without ORDER BY."""
        calls = (call for text in _expressions(self.root) for call in _IN_ORDER.finditer(text))
        names = {call[1] for call in calls if _ORDER_BY.search(_arguments(call)) is None}
        yield from (Uncertainty(kind=UncertaintyKind.AGGREGATE_ORDER, name=f"{name}()") for name in sorted(names))

    def _sums_of_floats(self) -> Iterator[Uncertainty]:
        """Yield the aggregates that may add up floating-point numbers."""
        names = sorted(name for _, name in self.functions if _SUM.fullmatch(name)) if self.has_floats else []
        yield from (Uncertainty(kind=UncertaintyKind.FLOAT, name=f"{name}()") for name in names)

    def _returned_all(self, limit: str | None, rows: int) -> bool:
        """Return whether LIMIT left no row out. limit: its number; None if it is an expression, or FETCH."""
        return limit is not None and rows < int(limit) and _OFFSET.search(self._text) is None

    @property
    def _limit_chooses_one_way(self) -> bool:
        """Return whether the statement's LIMIT leaves no choice: rows with equal keys are equal, or keys are unique."""
        returned = set(self._outputs[: len(self.columns)])
        is_all_keys = bool(returned) and returned <= self._ordered
        return is_all_keys or self.is_ordered or _WITH_TIES.search(self._text) is not None

    def _inner_limit_chooses_one_way(self, limit: Raw) -> bool:
        """Return the same for a LIMIT in a subquery or a view, by the order in which the plan reads its rows."""
        outputs = set(self._keys.spelled(limit, "Output"))
        *_, last = chain(limit, KEEP_ORDER)
        if last["Node Type"] in SORTED:
            keys = set(self._keys.spelled(last, "Sort Key"))
            return (bool(outputs) and outputs <= keys) or self._keys.is_identified(limit, keys)
        # min() and max() read the first entry of an index.
        first = self.index_keys.get(str(last.get("Index Name")), ())[:1]
        return bool(first) and [column_name(text) for text in outputs] == [key_expression(text) for text in first]

    @cached_property
    def _keys(self) -> PlanKeys:
        return PlanKeys(root=self.root, unique_keys=self.unique_keys)

    @cached_property
    def _text(self) -> str:
        """The statement without quoted parts and parts in parentheses."""
        return outermost(without_literals(_with_plain_names(self.statement)))

    @cached_property
    def _order(self) -> tuple[str, ...]:
        """The items of ORDER BY; empty without one."""
        *before, items = _ORDER_BY.split(self._text)
        return tuple(one.strip() for one in _END_OF_ORDER.split(items)[0].split(",")) if before else ()

    @cached_property
    def _ordered(self) -> set[str]:
        """The expressions that ORDER BY is proven to contain, as EXPLAIN prints them."""
        *_, last = chain(self.root, KEEP_ORDER)
        keys = self._keys.spelled(last, "Sort Key") if last["Node Type"] in SORTED else []
        found = set()
        if len(keys) == len(self._order) and all(map(self._may_be, self._order, keys)):
            found |= set(keys)
        for name in filter(None, map(_plain_name, self._order)):
            returned = self._returned(name)
            if returned is not None:
                found.add(returned)
            elif last["Node Type"] in _INDEX_SCANS:
                found |= self._read_in_order(last, name)
        return found

    def _may_be(self, item: str, key: str) -> bool:
        """Return whether an item of ORDER BY may be this key of a sort. A sort of a subquery may have other keys."""
        name = _plain_name(item)
        if name is None:
            return True
        returned = self._returned(name)
        return column_name(key) == name.rpartition(".")[2] if returned is None else key == returned

    @cached_property
    def _outputs(self) -> list[str]:
        """The expressions of the returned columns, followed by others that the plan needs."""
        return self._keys.spelled(self.root, "Output")

    @property
    def _written_outputs(self) -> Iterator[str]:
        """Yield the expressions of written columns, without the columns by which rows are found."""
        if self.root["Node Type"] == _MODIFY_TABLE:
            for one in self.root.get("Plans", ()):
                yield from (text for text in one.get("Output", ()) if not _ROW_IDENTITY.fullmatch(text))

    def _returned(self, name: str) -> str | None:
        """Return the expression of a returned column by its number or name; names of columns of tables come second."""
        if not name.isdecimal() and name not in self.columns:
            return None
        place = int(name) - 1 if name.isdecimal() else self.columns.index(name)
        return self._outputs[place] if place < len(self._outputs) else None

    def _read_in_order(self, scan: Raw, name: str) -> set[str]:
        """Return a column of a table as EXPLAIN prints it, if an index that is read in order has it among its keys."""
        keys = {key_expression(text) for text in self.index_keys.get(str(scan.get("Index Name")), ())}
        column = name.rpartition(".")[2]
        qualified = f"{scan.get('Alias')}.{column}"
        is_key = column in keys and name in (column, qualified)
        return {self._keys.without_alias(qualified)} & set(self._outputs) if is_key else set()


def writes(root: Raw) -> bool:
    """Return whether the statement with this plan writes rows."""
    return any(node["Node Type"] == _MODIFY_TABLE for node in raw_nodes(root))


def functions_in(root: Raw) -> frozenset[FunctionName]:
    """Return all functions that a plan with VERBOSE calls."""
    return frozenset(call for text in _expressions(root) for call in _called(text))


def _called(text: str) -> Iterator[FunctionName]:
    """Yield the functions that an expression calls."""
    for schema, name in _CALL.findall(text):
        yield unquoted_name(schema), unquoted_name(name)


def _with_plain_names(statement: str) -> str:
    """Return a statement without quotes around names that need none: ORMs write `"users"."id"`."""
    pieces, done = [], 0
    for begin, end in quoted_parts(statement):
        if _PLAIN.fullmatch(statement, begin, end):
            pieces += [statement[done:begin], statement[begin + 1 : end - 1]]
            done = end
    return "".join([*pieces, statement[done:]])


def _plain_name(item: str) -> str | None:
    """Return the name or number in an item of ORDER BY; None for other expressions and quoted names."""
    match = _ITEM.fullmatch(item)
    return None if match is None else match[1].lower()


def _arguments(call: re.Match[str]) -> str:
    """Return the arguments of a call, up to its closing parenthesis. call: ends with the opening one."""
    depth, text = 1, call.string
    for place in range(call.end(), len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if not depth:
            return text[call.end() : place]
    return text[call.end() :]


def _expressions(root: Raw) -> Iterator[str]:
    """Yield all texts of a plan, with `?` for each string in them."""
    return (_STRING.sub("?", text) for text in _texts(root))


def _texts(root: Raw) -> Iterator[str]:
    for node in raw_nodes(root):
        for value in node.values():
            texts = [value] if isinstance(value, str) else value if isinstance(value, list) else ()
            yield from (text for text in texts if isinstance(text, str))
