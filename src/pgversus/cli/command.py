"""The command as it was typed, to be kept among the results: whoever repeats it finds it there."""

import shlex
from collections.abc import Sequence

from pgversus.study.asked import without_secrets


def command_typed(arguments: Sequence[str]) -> str:
    """For a shell, users and passwords of connections left out as everywhere in results."""
    return shlex.join(["pgversus", *(without_secrets(argument) for argument in arguments)])
