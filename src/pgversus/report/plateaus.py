"""Of levels that are amounts, the best one and those that cannot be told apart from it, in words."""

from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.sweeps import FEWEST_LEVELS, amounts_of
from pgversus.stats.analysis import Plateau, plateau
from pgversus.stats.confidence import Verdict
from pgversus.text.translation import listed, tell, together


def plateau_sentences(answer: StudyAnswer) -> list[str]:
    """One for each context whose compared levels are amounts, in the order of the study."""
    return [sentence for one in answer.answers if (sentence := plateau_sentence(one))]


def plateau_sentence(one: Answer) -> str:
    """`512MB to 2GB cannot be told apart; 1GB is the best of them.`; empty where levels are no amounts."""
    _, amounts = amounts_of(one.comparison)
    if len(amounts) < FEWEST_LEVELS:
        return ""
    ascending = sorted(amounts, key=lambda arm: amounts[arm][0])
    known = [arm for arm in ascending if _is_claimed(one, arm)]
    found = plateau(one.blocks, one.analysis.metric, one.rule, known)
    if found is None:
        return ""
    label = {arm: amounts[arm][1] for arm in ascending}
    told = together(_found(found, known, label), _left_out([label[arm] for arm in ascending if arm not in known]))
    return tell("{place}: {sentence}", place=one.context.label, sentence=told) if one.context.label else told


def _is_claimed(one: Answer, arm: int) -> bool:
    """Whether anything is said of an arm: of an invalid one nothing is, and of one without trials nothing is known."""
    is_invalid = arm > 0 and one.analysis.result_of(arm).verdict is Verdict.INVALID
    return not is_invalid and one.analysis.metric in one.analysis.levels[arm]


def _found(found: Plateau, known: list[int], label: dict[int, str]) -> str:
    values = {"best": label[found.best], "first": label[found.first], "last": label[found.last]}
    if found.first == found.last:
        return tell("{best} is the best, and is told apart from its neighbours.", **values)
    if (found.first, found.last) == (known[0], known[-1]):
        return tell("No level can be told apart from the best, {best}.", **values)
    return tell("{first} to {last} cannot be told apart; {best} is the best of them.", **values)


def _left_out(labels: list[str]) -> str:
    return tell("Nothing is claimed of {levels}.", levels=listed(labels)) if labels else ""
