"""Scripts of pgbench and psql, which contain commands and variables besides SQL."""

import ast
import re
from collections.abc import Callable, Mapping
from contextlib import suppress

from pgversus.statements.literals import parameters_in
from pgversus.text.sql import QUOTE, Quotes, quoted_parts

_ENDS = r"\\(?:[ga]set|g|gx|gexec|watch)\b"
_TOKEN = re.compile(
    # A backslash at the end of a line continues a command of pgbench.
    rf"(?P<command>(?:^|(?<=;))[^\S\n]*(?!{_ENDS})\\[A-Za-z!](?:\\\n|[^\n])*\n?)"
    rf"|(?P<end>{_ENDS}[^\n]*|\\;)"
    rf"|(?P<quote>{QUOTE})",
    re.MULTILINE,
)
_SET = re.compile(r"^[^\S\n]*\\set[^\S\n]+(\w+)[^\S\n]+((?:\\\n|[^\n])+)", re.MULTILINE)
_OF_PSQL = re.compile(
    r"^[^\S\n]*\\(?:c|connect|copy|echo|encoding|i|include|ir|o|pset|prompt|q|t|timing|unset|x)\b", re.MULTILINE
)
"""Commands that pgbench does not have."""
_VARIABLE = re.compile(r"(?<![:\w]):([^\W\d]\w*)")
_IN_STRING = re.compile(r"(?<!:):([^\W\d]\w*)")
_USUAL = {"scale": 1}
"""Variables that pgbench itself sets, with their default values."""
_LONGEST_EXPRESSION, _LARGEST = 1000, 2**63
_RANDOM = frozenset({"random", "random_gaussian", "random_exponential", "random_zipfian"})
"""Functions of pgbench that return a random number between their first two arguments."""


def without_commands(text: str) -> str:
    """Return a script without its commands; those that send a statement, such as `gset`, become semicolons."""
    quotes, pieces, done, position = Quotes(text), list[str](), 0, 0
    while (found := _TOKEN.search(text, position)) is not None:
        position = found.end()
        if found["quote"]:
            end = quotes.end(found["quote"], found.end())
            position = found.start() + 1 if end is None else end
        else:
            pieces += [text[done : found.start()], ";" if found["end"] else ""]
            done = position
    return "".join([*pieces, text[done:]])


def with_parameters(statement: str) -> str:
    """Return a statement with $1, $2 and so on in place of its variables; unchanged if it has parameters itself."""
    numbers: dict[str, int] = {}

    def parameter(variable: re.Match[str]) -> str:
        return f"${numbers.setdefault(variable[1], len(numbers) + 1)}"

    return statement if parameters_in(statement) else _replaced(statement, _VARIABLE, parameter, in_strings=False)


def is_of_pgbench(text: str) -> bool:
    """Return whether a script is for pgbench, which replaces variables inside strings as well, and not for psql."""
    return not _OF_PSQL.search(text)


def with_typical_values(statement: str, values: Mapping[str, str], *, in_strings: bool) -> str:
    """Return a statement with values in place of its variables. in_strings: also inside strings."""

    def value(variable: re.Match[str]) -> str:
        return values.get(variable[1], variable[0])

    if in_strings:
        statement = _replaced(statement, _IN_STRING, value, in_strings=True)
    return _replaced(statement, _VARIABLE, value, in_strings=False)


def _replaced(
    statement: str, pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str], *, in_strings: bool
) -> str:
    """Replace a pattern in all strings of a statement, or outside of strings, quoted names and comments."""
    pieces, done = [], 0
    for begin, end in [*quoted_parts(statement), (len(statement), len(statement))]:
        before, part = statement[done:begin], statement[begin:end]
        pieces.append(before if in_strings else pattern.sub(replace, before))
        pieces.append(pattern.sub(replace, part) if in_strings and part.startswith("'") else part)
        done = end
    return "".join(pieces)


def typical_values(text: str) -> dict[str, str]:
    """Return a value for each variable that a pgbench script sets to a whole number: the middle of a random one.

    Empty for a script that sets nothing.
    """
    known = dict(_USUAL)
    commands = _SET.findall(text)
    for name, expression in commands:
        value = None
        with suppress(ValueError, SyntaxError, ArithmeticError, RecursionError, MemoryError):
            value = _value(_parsed(expression), known)
        known.pop(name, None)
        if value is not None:
            known[name] = value
    return {name: str(value) for name, value in known.items()} if commands else {}


def _parsed(expression: str) -> ast.expr:
    # A number sign is an operator of pgbench, and a comment in Python; other arithmetic has the same form.
    if len(expression) > _LONGEST_EXPRESSION or "#" in expression:
        raise ValueError("an expression that is not computed")
    return ast.parse(_VARIABLE.sub(r"\1", expression.replace("\\\n", " ")).strip(), mode="eval").body


def _value(tree: ast.expr, known: Mapping[str, int]) -> int:
    """Return the value of an expression; ValueError if it is unknown, or outside of pgbench's range."""
    match tree:
        case ast.Constant(value=int() as value):
            pass
        case ast.Name(id=name) if name in known:
            value = known[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = -_value(operand, known)
        case ast.BinOp(left=left, op=op, right=right):
            value = _result(op, _value(left, known), _value(right, known))
        case ast.Call(func=ast.Name(id=name), args=[least, most, *_]) if name in _RANDOM:
            value = (_value(least, known) + _value(most, known)) // 2
        case _:
            raise ValueError("an unknown value")
    if abs(value) >= _LARGEST:
        raise ValueError("a value out of range")
    return value


def _result(op: ast.operator, left: int, right: int) -> int:
    match op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Div() | ast.Mod():
            # Like C, pgbench rounds toward zero.
            quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            return quotient if isinstance(op, ast.Div) else left - right * quotient
        case _:
            raise ValueError("an unknown operator")
