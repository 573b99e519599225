"""How long a study may still take: what its courses still ask for, and no more than the budget has."""

from collections.abc import Sequence
from statistics import fmean

from pgversus.lab.course import Course
from pgversus.lab.progress import Outlook


def outlook(courses: Sequence[Course], budget_s: float) -> Outlook:
    """Of all courses of a study. budget_s: for the blocks of all of them."""
    spent_s = sum(course.wall_s for course in courses)
    waiting = [course for course in courses if course.stopped is None]
    left_s = max(0.0, budget_s - spent_s)
    is_fixed = any(course.is_fixed for course in waiting)
    asked_s = _fixed_s(courses, waiting) if is_fixed else _asked_s(waiting)
    is_at_most = not is_fixed and (asked_s is None or asked_s > left_s)
    return Outlook(
        contexts=len(courses),
        ended=len(courses) - len(waiting),
        spent_s=spent_s,
        budget_s=None if is_fixed else budget_s,
        seconds_left=left_s if is_at_most else asked_s,
        is_at_most=is_at_most,
    )


def _asked_s(waiting: Sequence[Course]) -> float | None:
    """What all of them still ask for; None as soon as one cannot tell."""
    total = 0.0
    for course in waiting:
        seconds = course.seconds_left
        if seconds is None:
            return None
        total += seconds
    return total


def _fixed_s(courses: Sequence[Course], waiting: Sequence[Course]) -> float | None:
    """Where numbers of blocks were given; a course without a block is taken to be as slow as those that have some.

    None before the first block of all.
    """
    known = [course.seconds_per_block for course in courses if course.blocks]
    if not known:
        return None
    usual_s = fmean(known)
    return sum(_fixed_course_s(course, usual_s) for course in waiting)


def _fixed_course_s(course: Course, usual_s: float) -> float:
    seconds = course.seconds_left
    return (course.comparison.design.fixed_blocks or 0) * usual_s if seconds is None else seconds
