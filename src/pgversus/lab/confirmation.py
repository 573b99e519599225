"""The confirmation of an upgrade check: measures differences from its screening again. Others are only likely."""

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
    """Measure the findings of a finished screening again, in fresh blocks; return why measuring ended.

    study: the screening, with its results in the folder.
    """
    numbers = contexts_to_confirm(read_answer(results))
    if not numbers:
        return StopReason.DECIDED
    folder = confirmation_folder(results)
    if not holds_results(folder):
        progress.say(f"confirming {count(len(numbers), 'statement')} that may have become faster or slower")
    return measure(confirmation_study(study, numbers), folder)
