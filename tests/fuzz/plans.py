"""Plans: EXPLAIN output with arbitrary changes, read, compared and shown."""

import json
from pathlib import Path
from random import Random

from pgversus.answers.plans import ComparedPlans, PlansAnswer
from pgversus.errors import PlanError
from pgversus.plans.difference import difference
from pgversus.plans.explain import read_plans
from pgversus.plans.plan import Plan
from pgversus.records.plans import StatementName
from pgversus.report.html import plans_html
from pgversus.report.markdown import plans_markdown
from pgversus.report.plans import plans_document, plans_text
from pgversus.text.translation import Language, use_language
from tests.builders import DATA
from tests.fuzz.mutations import changed_document
from tests.fuzz.program import exit_code_of
from tests.fuzz.target import Target

REAL = [json.loads(file.read_text())["explain"] for file in sorted((DATA / "plans" / "corpus").glob("*.json"))]
_FORMS = ("text", "markdown", "html")


def read_or_refused(text: str, usual: Plan) -> str:
    """Return the slug of the error, or an empty string if the plans can be shown; any other exception is a bug."""
    try:
        found = read_plans(text, "x")
    except PlanError as error:
        return error.slug
    for one, other in ((found[0], usual), (usual, found[0])):
        compared = ComparedPlans(
            statement=StatementName(number=1, text="q"),
            labels=("a", "b"),
            plans=(one, other),
            difference=difference(one, other),
        )
        answer = PlansAnswer(compared=(compared,))
        for language in Language:
            with use_language(language):
                assert plans_text(answer)
                assert plans_html(answer)
                assert plans_markdown(answer)
        assert json.dumps(plans_document(answer), allow_nan=False)
    return ""


def _make(rng: Random) -> tuple[bytes, bytes, list[str]]:
    """Return two files and the options to show them: one statement on two majors, with one or both files changed."""
    majors = rng.choice(REAL)
    one, other = (json.dumps(majors[rng.choice(sorted(majors))], indent=rng.choice([None, 2])) for _ in range(2))
    contents = [changed_document(one, other, rng), other.encode()]
    if rng.random() < 0.2:
        contents[1] = changed_document(other, one, rng)
    rng.shuffle(contents)
    flags = ["--json"] if rng.random() < 0.2 else ["--format", rng.choice(_FORMS), "--lang", rng.choice(["en", "ja"])]
    return contents[0], contents[1], flags


def _compare(subject: tuple[bytes, bytes, list[str]], folder: Path) -> bool:
    baseline, contender, flags = subject
    (folder / "a.json").write_bytes(baseline)
    return exit_code_of(["plans", "a.json", "-", *flags], folder, stdin=contender) == 0


PLANS = Target(name="plan", share=5, make=_make, read=_compare, most_seconds=5.0)
