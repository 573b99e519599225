"""The sections of a write-up, in the order in which a reader asks for them."""

from collections.abc import Callable, Iterable, Iterator

from pgversus.report.answer import StudyAnswer
from pgversus.report.article.amounts import amount_tables
from pgversus.report.article.cases import Case, Form, cases
from pgversus.report.article.commands import work
from pgversus.report.article.data import TextOf, data
from pgversus.report.article.environment import environment
from pgversus.report.article.explained import explained
from pgversus.report.article.figures import Published, published_by_verdict
from pgversus.report.article.loads import load_tables, pair_tables
from pgversus.report.article.operations import operation_tables
from pgversus.report.article.repeating import repeating
from pgversus.report.article.settings import settings
from pgversus.report.article.summary import summary
from pgversus.report.markdown import escaped, paragraph
from pgversus.report.overview import not_measured, overview_sentences, shared_caveats
from pgversus.report.sentences import answer_sentences
from pgversus.report.small_print import comparison_lines, restarts, study_lines
from pgversus.text.translation import later, tell, together

_TABLES: dict[Form, Callable[[Case, Published], Iterator[str]]] = {
    Form.OPERATION: operation_tables,
    Form.AMOUNTS: amount_tables,
    Form.PAIR: pair_tables,
    Form.LOADS: load_tables,
}
_HOW = later(
    "A ratio is that of the contender over {baseline}, from blocks in which every server is started afresh and all of "
    "them are measured in turn. Its interval holds for all verdicts of this study together. "
    "Undecided means that the interval holds no difference as well as one that matters."
)
_HOW_WHERE_RUNNING = later(
    "A ratio is that of the contender over {baseline}, from blocks in which all servers are measured in turn; a server "
    "that was running already is never restarted. Its interval holds for all verdicts of this study together. "
    "Undecided means that the interval holds no difference as well as one that matters."
)


def article(answer: StudyAnswer, text_of: TextOf) -> str:
    """The whole write-up as Markdown; texts of users are escaped, or stand in fences that nothing in them ends.

    text_of: the text of an SQL file that is not kept with the results.
    """
    known, found = published_by_verdict(answer), cases(answer)
    sections: tuple[tuple[str, Iterable[str]], ...] = (
        (tell("Environment"), environment(answer)),
        (tell("Settings"), settings(answer)),
        (tell("Data"), data(answer, text_of)),
        (tell("Cases"), (part for case in found for part in _case(case, known))),
        (tell("Summary"), summary(found, known)),
        (tell("Plans"), explained(answer)),
        (tell("Caveats"), _caveats(answer)),
        (tell("How it was measured"), _measuring(answer)),
        (tell("How to repeat it"), repeating(answer)),
    )
    parts = [f"# {escaped(_title(answer))}", paragraph(answer.study.question), *_in_short(answer)]
    for head, content in sections:
        told = [part for part in content if part]
        parts += [f"## {escaped(head)}", *told] if told else []
    return "\n\n".join(part for part in parts if part) + "\n"


def _title(answer: StudyAnswer) -> str:
    """The study's; of a comparison what it compares."""
    if answer.study.title or not answer.answers:
        return answer.study.title or answer.study.name
    first = answer.answers[0].comparison
    others = ", ".join(arm.label for arm in first.contenders)
    return tell(
        "{contender} against {baseline}: {workload}",
        contender=others,
        baseline=first.baseline.label,
        workload=cases(answer)[0].name,
    )


def _in_short(answer: StudyAnswer) -> Iterator[str]:
    if len(answer.answers) == 1:
        yield paragraph(together(*answer_sentences(answer.answers[0])))
    yield paragraph(together(*overview_sentences(answer)))


def _case(case: Case, known: Published) -> Iterator[str]:
    yield f"### {escaped(case.name)}"
    yield from work(case)
    yield from _TABLES[case.form](case, known)


def _caveats(answer: StudyAnswer) -> Iterator[str]:
    yield _list(shared_caveats(answer))
    yield _list(tell("not measured: {line}", line=line) for line in not_measured(answer))


def _measuring(answer: StudyAnswer) -> Iterator[str]:
    if not answer.answers:
        return
    baselines = dict.fromkeys(one.comparison.baseline.label for one in answer.answers)
    yield paragraph(tell(_HOW if restarts(answer.answers) else _HOW_WHERE_RUNNING, baseline=", ".join(baselines)))
    is_single = len(answer.answers) == 1 and not answer.study.title
    yield _list(comparison_lines(answer.answers[0]) if is_single else study_lines(answer))


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {paragraph(line)}" for line in lines)
