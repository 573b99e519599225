"""Where in a block something happened, in words."""

from pgversus.records.trials import Phase
from pgversus.text.translation import later, tell

_WORDS = {Phase.START: later("start"), Phase.WARM_UP: later("warm-up"), Phase.MEASURE: later("measure")}


def phase_word(phase: Phase) -> str:
    """As people are told it."""
    return tell(_WORDS[phase])
