"""How it was measured, in plain words, and what whoever repeats it needs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pgversus.language import tell
from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.small_print import comparison_lines, study_lines
from pgversus.report.units import duration, percent
from pgversus.study.dataset import SetupFile
from pgversus.study.operation import Operation
from pgversus.study.workload import PgbenchWorkload, Script


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeating:
    """What is needed."""

    command: str
    """As it was typed; where that was not kept, how the results are gone on with."""
    program: str
    seed: int
    file_name: str
    file_text: str
    files: list[tuple[str, str]]
    """Files of the data and scripts, each with its SHA-256 or its text's first line."""
    builds: list[tuple[str, str]]
    """Servers by name, with the SHA-256 of what was fetched."""
    commands: list[str]
    """Lines in which windows, builds and host are told, as everywhere."""


def method(answer: StudyAnswer) -> list[str]:
    """Paragraphs, each about one thing."""
    if not answer.answers:
        return []
    first = answer.answers[0]
    return list(_method(answer, first))


def _method(answer: StudyAnswer, first: Answer) -> Iterator[str]:
    design = first.comparison.design
    yield tell(
        "A block is the unit of evidence: in it every arm is started afresh on a fresh copy of the same data, in "
        "random order, and measured close in time. What drifts on the host hits all arms of a block alike, and cancels "
        "in their ratio."
    )
    if isinstance(first.comparison.workload, Operation):
        yield tell("In each block every arm does the operation once, on its own copy; the time is taken by the client.")
    else:
        yield tell(
            "In each block every arm is measured in {rounds} windows of {window}, after a warm-up of {warm_up}; the "
            "windows of the arms alternate in an order that cancels a steady drift. Windows of one start share its "
            "luck, so they make one number together.",
            rounds=design.rounds,
            window=duration(design.window_s),
            warm_up=duration(design.warm_up_s),
        )
    yield tell(
        "The ratio is the geometric mean of the blocks' ratios, contender / baseline; its interval is Student's, on "
        "the log scale, over blocks."
    )
    if design.fixed_blocks is None:
        yield tell(
            "After each block one looks and stops as soon as a verdict is known. Each look is so strict that over all "
            "looks, and over all {verdicts} verdicts together, an interval misses the truth at most 1 time in 20.",
            verdicts=answer.study.verdicts,
        )
    else:
        yield tell(
            "One look after {blocks} blocks, strict enough for all {verdicts} verdicts together: at most 1 time in 20 "
            "any interval misses the truth.",
            blocks=design.fixed_blocks,
            verdicts=answer.study.verdicts,
        )
    yield tell(
        "faster, slower: the interval leaves no difference out, so that the sign is sure. equivalent: the whole "
        "interval lies within the margin, ±{margin}, which was set beforehand. undecided: neither is known; the "
        "interval says how large a difference could still be. invalid: trials failed again and again, and nothing is "
        "claimed.",
        margin=percent(design.margin),
    )


def repeating(answer: StudyAnswer) -> Repeating:
    """What is known of how it was asked for, and of what."""
    asked = answer.asked
    single = answer.answers[0] if len(answer.answers) == 1 and not answer.study.title else None
    return Repeating(
        command=asked.command,
        program=asked.program,
        seed=answer.study.seed,
        file_name=asked.file_name,
        file_text=asked.file_text,
        files=sorted(dict(_files(answer)).items()),
        builds=[(name, _hash(facts)) for name, facts in sorted(answer.builds.items())],
        commands=comparison_lines(single) if single is not None else study_lines(answer),
    )


def _files(answer: StudyAnswer) -> Iterator[tuple[str, str]]:
    for one in answer.answers:
        for arm in one.comparison.arms:
            for file in (*arm.dataset.setup_files, *arm.dataset.prepare):
                yield _file(file)


def _file(file: SetupFile) -> tuple[str, str]:
    return file.path, file.sha256


def _hash(facts: Any) -> str:
    return str(facts.get("artifact_sha256") or facts.get("postgres_sha256") or "")


def scripts(answer: StudyAnswer) -> list[Script]:
    """Every script of every load, once; nothing of built-in ones, which have no text here."""
    loads = (arm.workload for one in answer.answers for arm in one.comparison.arms)
    found = (script for load in loads if isinstance(load, PgbenchWorkload) for script in load.scripts if script.text)
    return list({(script.name, script.text): script for script in found}.values())
