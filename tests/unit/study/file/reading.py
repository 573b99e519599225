"""Reading study files in tests, without files on disk."""

from pgversus.errors import StudyError, StudyFileError
from pgversus.study.dataset import Dump, DumpFormat
from pgversus.study.file.read import read_study
from pgversus.study.study import Study
from pgversus.study.workload import PgbenchWorkload

SEED = 7

SHORT = """\
title = "Two servers"
[factors]
server = ["16.12", "17.8"]
[workload]
script = "query.sql"
"""


def read_file(path: str) -> tuple[str, bytes]:
    """`missing*` is missing, `latin*` is not UTF-8; other files contain their own name as a query."""
    if path.startswith("missing"):
        raise FileNotFoundError(2, "No such file or directory")
    return f"/studies/{path}", b"SELECT '\xe9';" if path.startswith("latin") else f"SELECT '{path}';".encode()


def find_dump(path: str, database: str | None) -> Dump:
    """`missing*` is missing."""
    if path.startswith("missing"):
        raise StudyError("no dump", slug="study-no-dump", found=path, expected="a dump", to_do="pg_dump")
    return Dump(path=f"/studies/{path}", format=DumpFormat.CUSTOM, sha256="0" * 64, database=database or "")


def study(
    text: str, *, profile: str | None = None, requested_seed: int | None = None, budget_s: float | None = None
) -> Study:
    return read_study(
        text,
        name="planner.toml",
        read=read_file,
        find_dump=find_dump,
        profile=profile,
        seed=SEED,
        requested_seed=requested_seed,
        budget_s=budget_s,
    )


def first_load(text: str) -> PgbenchWorkload:
    """Return the workload of the first context of a file without operations."""
    workload = study(text).contexts[0].comparison.workload
    assert isinstance(workload, PgbenchWorkload)
    return workload


def problems(text: str, *, profile: str | None = None) -> list[StudyError]:
    """Return the problems of an invalid file."""
    try:
        study(text, profile=profile)
    except StudyFileError as error:
        return list(error.problems)
    raise AssertionError("the file was accepted")


def problem(text: str, *, profile: str | None = None) -> StudyError:
    """Return the only problem of a file."""
    found = problems(text, profile=profile)
    assert len(found) == 1, [(one.slug, one.where) for one in found]
    return found[0]


def labels(text: str, *, profile: str | None = None) -> list[tuple[str, list[str]]]:
    """Return the label of each context and the labels of its arms."""
    contexts = study(text, profile=profile).contexts
    return [(context.label, [arm.label for arm in context.comparison.arms]) for context in contexts]
