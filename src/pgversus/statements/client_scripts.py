"""Scripts of pgbench and psql, which contain commands and variables besides SQL."""

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from pgversus.statements.literals import parameters_in
from pgversus.text.sql import quoted_parts

_ENDS_STATEMENT = re.compile(r"\\(?:[ga]set|g|gx|gexec|watch)\b[^\n]*")
_COMMAND = re.compile(r"(?:^|(?<=;))[^\S\n]*\\[a-z!](?:\\\n|[^\n])*\n?", re.MULTILINE)
"""A backslash at the end of a line continues a command of pgbench."""
_SET = re.compile(r"^[^\S\n]*\\set[^\S\n]+(\w+)[^\S\n]+((?:\\\n|[^\n])+)", re.MULTILINE)
_VARIABLE = re.compile(r"(?<![:\w]):([^\W\d]\w*)")
_USUAL = {"scale": 1}
"""Variables that pgbench itself sets, with their default values."""
_LONGEST_EXPRESSION = 1000
_RANDOM = frozenset({"random", "random_gaussian", "random_exponential", "random_zipfian"})
"""Functions of pgbench that return a random number between their first two arguments."""
_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
}


def without_commands(text: str) -> str:
    """Return a script without its commands; those that send a statement, such as `gset`, become semicolons."""
    pieces = (
        part if is_quoted else _COMMAND.sub("", _ENDS_STATEMENT.sub(";", part)) for part, is_quoted in _parts(text)
    )
    return "".join(pieces)


def with_parameters(statement: str) -> tuple[str, list[str]]:
    """Return a statement with $1, $2 and so on in place of its variables, and their names in this order.

    Without names, and unchanged, if it has parameters itself.
    """
    if parameters_in(statement):
        return statement, []
    names: dict[str, int] = {}

    def parameter(variable: re.Match[str]) -> str:
        return f"${names.setdefault(variable[1], len(names) + 1)}"

    text = "".join(part if is_quoted else _VARIABLE.sub(parameter, part) for part, is_quoted in _parts(statement))
    return text, list(names)


def typical_values(text: str) -> dict[str, str]:
    """Return a value for each variable that a pgbench script sets to a whole number: the middle of a random one."""
    known = dict(_USUAL)
    for name, expression in _SET.findall(text):
        known.pop(name, None)
        with suppress(ValueError, SyntaxError, ArithmeticError, RecursionError):
            known[name] = _value(_parsed(expression), known)
    return {name: str(value) for name, value in known.items()}


def _parsed(expression: str) -> ast.expr:
    if len(expression) > _LONGEST_EXPRESSION:
        raise ValueError("a long expression")
    # Arithmetic has the same form in Python.
    return ast.parse(_VARIABLE.sub(r"\1", expression.replace("\\\n", " ")).strip(), mode="eval").body


def _value(tree: ast.expr, known: Mapping[str, int]) -> int:
    """Return the value of an expression; ValueError if it is unknown."""
    match tree:
        case ast.Constant(value=int() as value):
            return value
        case ast.Name(id=name) if name in known:
            return known[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, known)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, known), _value(right, known))
        case ast.Call(func=ast.Name(id=name), args=[least, most, *_]) if name in _RANDOM:
            return (_value(least, known) + _value(most, known)) // 2
        case _:
            raise ValueError("an unknown value")


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a text, and whether each is a string, a quoted name or a comment."""
    done = 0
    for begin, end in quoted_parts(text):
        yield text[done:begin], False
        yield text[begin:end], True
        done = end
    yield text[done:], False
