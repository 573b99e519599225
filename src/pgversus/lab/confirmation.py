"""The confirmation of an upgrade check: what differs in its screening is measured again before it is reported."""

from pathlib import Path

from pgversus.answers.read import read_answer
from pgversus.answers.upgrade import contexts_to_confirm
from pgversus.engine.progress import Progress
from pgversus.lab.attribution import Measure
from pgversus.store.folder import confirmation_folder, holds_results
from pgversus.study.application import confirmation_study
from pgversus.study.design import StopReason
from pgversus.study.study import Study
from pgversus.text.units import count


def confirm(study: Study, results: Path, measure: Measure, progress: Progress) -> StopReason:
    """Measure what a finished screening found again, in fresh blocks; return why that ended.

    study: the screening, with its results in the folder.
    """
    numbers = contexts_to_confirm(read_answer(results))
    if not numbers:
        return StopReason.DECIDED
    folder = confirmation_folder(results)
    if not holds_results(folder):
        progress.say(f"measuring {count(len(numbers), 'statement')} again that may have become faster or slower")
    return measure(confirmation_study(study, numbers), folder)
