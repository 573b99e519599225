"""A dry run in words."""

from pgversus.study.host_access import HostAccess
from pgversus.study.needs import Needs
from pgversus.study.study import Study
from pgversus.study.workload import PgbenchWorkload
from pgversus.text.redaction import message_without_secrets, visible
from pgversus.text.units import count, duration, size

_MOST_SHOWN = 12
_NO_ACCESS = HostAccess()


def dry_run_text(
    study: Study,
    needs: Needs,
    *,
    downloads: tuple[str, ...],
    to_build: tuple[str, ...],
    not_asked: tuple[str, ...] = (),
    access: HostAccess = _NO_ACCESS,
    free_bytes: int,
    blocks_there: int,
    results: str,
    with_plans: bool = True,
) -> str:
    """What would be done, in lines for a terminal or a pipe.

    not_asked: servers of which nothing is known. access: what needs consent. with_plans: whether they are looked at.
    """
    lines = [
        study.title,
        ", ".join(
            [
                count(len(study.contexts), "comparison"),
                count(study.treatments, "treatment"),
                f"{count(study.verdicts, 'verdict')} that share one error of 5 %",
            ]
        ),
        *_left_out(study),
        f"trials: {needs.least_trials} or more",
        f"downloads: {', '.join(downloads) if downloads else _no_downloads(to_build)}",
        *([f"to be built: {', '.join(to_build)}, some minutes of all processors each"] if to_build else []),
        *([f"not asked: {', '.join(not_asked)}; --ask-servers asks for versions and settings"] if not_asked else []),
        *access.lines,
        *([] if access.is_none else ["to run it with all of this, add --trust, or answer yes when you are asked"]),
        f"disk: about {size(needs.disk_bytes)}{_and_setup(needs)}{_at_once(needs)}, {size(free_bytes)} free",
        f"loading: {count(needs.snapshots, 'snapshot')}, about {duration(needs.preparation_s)} with the first try",
        f"blocks: {_blocks(needs)}",
        *(_afterwards(study, needs) if with_plans else []),
        f"results: {results}" + (f" ({count(blocks_there, 'block')} there already)" if blocks_there else ""),
    ]
    labels = [context.label for context in study.contexts if context.label]
    lines += [f"  {label}" for label in labels[:_MOST_SHOWN]]
    if len(labels) > _MOST_SHOWN:
        lines.append(f"  ... and {len(labels) - _MOST_SHOWN} more")
    return visible(message_without_secrets("\n".join(lines))) + "\n"


def _afterwards(study: Study, needs: Needs) -> list[str]:
    """Of operations there are no plans."""
    if not any(isinstance(context.comparison.workload, PgbenchWorkload) for context in study.contexts):
        return []
    most = "three times as long" if needs.most_s is None else f"{duration(needs.most_s)} more"
    return [f"afterwards: what plans account for that made a difference, at most {most} (--no-plans leaves it out)"]


def _left_out(study: Study) -> list[str]:
    if not study.skipped:
        return []
    return [f"left out: {count(len(study.skipped), 'treatment')} whose server lacks the setting"]


def _no_downloads(to_build: tuple[str, ...]) -> str:
    return "none, all source is here" if to_build else "none, all builds are in the cache"


def _and_setup(needs: Needs) -> str:
    return f" and what {count(needs.setup_files, 'dataset')} of setup files make" if needs.setup_files else ""


def _at_once(needs: Needs) -> str:
    return f" at once (measured in {needs.parts} parts one after another)" if needs.parts > 1 else ""


def _blocks(needs: Needs) -> str:
    if needs.most_s is None:
        return f"about {duration(needs.least_s)} or more (their number is fixed)"
    if needs.least_s > needs.most_s:
        least = f"about {duration(needs.least_s)} until all could be known at the first look"
        return f"{duration(needs.most_s)}, the whole budget, too little for all ({least})"
    return f"{duration(needs.least_s)} to {duration(needs.most_s)} (all known at the first look; the whole budget)"
