"""How a study was asked for, as whoever repeats it has to ask."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was typed, and the file that it named."""

    program: str = ""
    """pgversus and its version; empty in results from before it was kept."""
    command: str = ""
    """As typed into a shell, without passwords; empty where a program asked."""
    file_name: str = ""
    """Of the study file; empty where there was none."""
    file_text: str = ""
