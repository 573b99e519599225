"""Of levels that are amounts, the best one and those that cannot be told apart from it, in words."""

from pgversus.language import tell
from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.sweeps import FEWEST_LEVELS, amounts_of
from pgversus.stats.plateau import plateau
from pgversus.stats.samples import Samples


def plateau_sentences(answer: StudyAnswer) -> list[str]:
    """One for each context whose compared levels are amounts, in the order of the study."""
    return [sentence for one in answer.answers if (sentence := plateau_sentence(one))]


def plateau_sentence(one: Answer) -> str:
    """`512MB to 2GB cannot be told apart; 1GB is the best of them.`; empty where levels are no amounts."""
    _, amounts = amounts_of(one.comparison)
    if len(amounts) < FEWEST_LEVELS:
        return ""
    ascending = sorted(amounts, key=lambda arm: amounts[arm][0])
    found = plateau(Samples(one.blocks), one.analysis.metric, one.rule, ascending)
    if found is None:
        return ""
    label = {arm: amounts[arm][1] for arm in ascending}
    values = {"best": label[found.best], "first": label[found.first], "last": label[found.last]}
    if found.first == found.last:
        told = tell("{best} is the best, and is told apart from its neighbours.", **values)
    elif {found.first, found.last} == {ascending[0], ascending[-1]}:
        told = tell("No level can be told apart from the best, {best}.", **values)
    else:
        told = tell("{first} to {last} cannot be told apart; {best} is the best of them.", **values)
    return tell("{place}: {sentence}", place=one.context.label, sentence=told) if one.context.label else told
