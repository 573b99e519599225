"""How values of flags are read."""

import re

from pgversus.errors import StudyError
from pgversus.study.workload import VARIABLE_NAME


def parse_variable(text: str) -> tuple[str, str]:
    """Name and value in pgbench's `-D NAME=VALUE`; StudyError without a name or an equals sign."""
    name, equals, value = text.partition("=")
    if not re.fullmatch(VARIABLE_NAME, name) or not equals:
        raise StudyError(
            f'"{text}" is no variable',
            slug="study-bad-variable",
            where=f"-D {text}",
            found=f'"{text}"',
            expected="NAME=VALUE, with letters, digits and _ in the name",
            to_do="-D rows=1000, then :rows in the script",
        )
    return name, value
