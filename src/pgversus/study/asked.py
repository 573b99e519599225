"""How a study was asked for, as whoever repeats it has to ask."""

import re
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


_USER = re.compile(r"(?<=://)[^/\s?#\"']*@")
_PASSWORD = re.compile(r"(?i)([?&](?:ssl)?password=)[^&\s\"']*")


def without_secrets(text: str) -> str:
    """The text with every URI as it may be stored and shown: no user, no password."""
    return _PASSWORD.sub(r"\1...", _USER.sub("", text))
