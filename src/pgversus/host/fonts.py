"""Whether this machine can draw the writing of a language."""

from pgversus.host.commands import run
from pgversus.text.translation import Language

_TIMEOUT_S = 20.0


def has_font_for(language: Language) -> bool:
    """Whether fontconfig knows a font for it; True where nobody can be asked."""
    try:
        found = run(["fc-list", f":lang={language.value}", "family"], timeout_s=_TIMEOUT_S)
    except OSError:
        return True
    return not found.succeeded or bool(found.stdout.strip())
