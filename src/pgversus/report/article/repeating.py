"""How it was asked for, so that whoever doubts it can ask again."""

from collections.abc import Iterator

from pgversus.report.answer import StudyAnswer
from pgversus.report.article.fences import fenced
from pgversus.report.markdown import escaped, paragraph
from pgversus.text.translation import tell


def repeating(answer: StudyAnswer) -> Iterator[str]:
    """The command, the study file with its text, seed and version."""
    asked = answer.asked
    if asked.command:
        yield fenced(asked.command, "sh")
    else:
        yield paragraph(tell("The command that measured this was not kept with these results."))
    yield paragraph(
        tell("Seed {seed}; {program}.", seed=answer.study.seed, program=asked.program)
        if asked.program
        else tell("Seed {seed}.", seed=answer.study.seed)
    )
    if asked.file_text:
        yield f"{escaped(asked.file_name)}:\n\n{fenced(asked.file_text, 'toml')}"
    yield paragraph(tell("Everything that was measured is in the results folder:"))
    yield fenced(f"pgversus report {answer.results} --format csv\npgversus report {answer.results} --json", "sh")
