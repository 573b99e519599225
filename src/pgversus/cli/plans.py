"""`pgversus plans`: how plans of the same statements differ."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgversus.cli.files import read_text
from pgversus.cli.output import write_file, write_out
from pgversus.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgversus.plans.plan import Plan
    from pgversus.plans.sentences.telling import Language
    from pgversus.report.compared_plans import ComparedPlans

_STDIN = "-"


@click.command(short_help="Show how plans of the same statements differ.")
@click.argument("names", nargs=-1, required=True, metavar="BASELINE CONTENDER...")
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "markdown")),
    default="text",
    show_default=True,
    help="Form of the report.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead.")
@click.option(
    "--lang", type=click.Choice(("en", "ja")), default="en", show_default=True, help="Language of the sentences."
)
@click.option("-o", "--output", type=click.Path(), metavar="FILE", help="Write to a file.  [default: standard output]")
def plans(names: tuple[str, ...], form: str, lang: str, output: str | None, *, as_json: bool) -> None:
    """Hold the plans in files against each other: what EXPLAIN (FORMAT JSON) printed, - for standard input.

    The first file is the baseline. They may come from any two servers of 14 or newer: what one major prints otherwise
    than another is no difference. Files with several plans are held against each other one by one.

    \b
    psql -XAtqc 'EXPLAIN (ANALYZE, BUFFERS, VERBOSE, FORMAT JSON) SELECT ...' > old.json
    pgversus plans old.json new.json
    """  # noqa: D301 - \b is the mark of click for lines that are not to be joined
    from pgversus.plans.sentences.telling import Language  # noqa: PLC0415 - not for `--help`

    if len(names) < 2:  # noqa: PLR2004 - one is held against another
        raise click.UsageError("name two or more: the baseline first")
    if names.count(_STDIN) > 1:
        raise click.UsageError("standard input can be read once")
    content = _content(_compared(names), "json" if as_json else form, Language(lang))
    if output is None:
        write_out(content, "")
    else:
        write_file(Path(output), content)


def _compared(names: "Sequence[str]") -> "list[ComparedPlans]":
    from pgversus.plans.difference import difference  # noqa: PLC0415 - not for `--help`
    from pgversus.report.compared_plans import ComparedPlans  # noqa: PLC0415 - the same

    baseline, *contenders = ((name, _plans_in(name)) for name in names)
    compared = []
    for label, found in contenders:
        if len(found) != len(baseline[1]):
            raise _other_number(label, len(found), baseline[0], len(baseline[1]))
        for number, pair in enumerate(zip(baseline[1], found, strict=True), start=1):
            compared.append(
                ComparedPlans(
                    statement=pair[0].query or f"plan {number}",
                    labels=(baseline[0], label),
                    plans=pair,
                    difference=difference(*pair),
                )
            )
    return compared


def _plans_in(name: str) -> "list[Plan]":
    from pgversus.plans.explain import read_plans  # noqa: PLC0415 - not for `--help`

    if name == _STDIN:
        return read_plans(sys.stdin.read(), "standard input")
    return read_plans(read_text(name, "plans"), name)


def _content(compared: "Sequence[ComparedPlans]", form: str, language: "Language") -> str:
    from pgversus.report.compared_plans import plans_document  # noqa: PLC0415 - not for `--help`
    from pgversus.report.plan_markdown import plans_markdown  # noqa: PLC0415 - the same
    from pgversus.report.plan_text import plans_text  # noqa: PLC0415 - the same

    if form == "json":
        return json.dumps(plans_document(compared, language), indent=2, ensure_ascii=False) + "\n"
    return plans_text(compared, language) if form == "text" else plans_markdown(compared, language)


def _other_number(label: str, found: int, baseline: str, expected: int) -> PlanError:
    return PlanError(
        "these files do not hold the plans of the same statements",
        slug="plan-other-number",
        where=label,
        found=f"{found} plans",
        expected=f"{expected}, as in {baseline}",
        to_do="explain the same statements in the same order",
    )
