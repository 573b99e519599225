import pytest

from pgversus.errors import ExitCode, StudyError, StudyFileError
from pgversus.study.file.read import read_study
from pgversus.study.servers import ServerName
from tests.unit.study.file.reading import SHORT, find_dump, problem, problems, read_file, study

TWO_LOADS = "[loads.c1]\n[loads.c24]\nclients = 24\n"
MATRIX = SHORT.replace("[workload]", 'jit = ["on", "off"]\n[workload]') + TWO_LOADS


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a = \n", 1, 5),
        ("a = 1\na = 2\n", 2, 6),
        ('a = "x\n', 1, 7),
        ("\n[a\n", 2, 3),
        ("a", 1, 2),
        ("a = [", 1, 6),
        ('x = """\n\n', 3, 1),
    ],
)
def test_invalid_toml_is_reported_with_line_and_column(text: str, line: int, column: int) -> None:
    found = problem(text)
    assert found.slug == "study-file-syntax"
    assert found.where == f"planner.toml, line {line}, column {column}"
    assert found.what.startswith("invalid TOML: ")


@pytest.mark.parametrize("text", ["x = " + "[" * 100_000, "x = " + "1" * 5000, "x = " + "[" * 30 + "]" * 30])
def test_excessive_nesting_and_numbers_are_syntax_errors(text: str) -> None:
    assert problem(text).slug == "study-file-syntax"


def test_a_repeated_key_has_its_own_remedy() -> None:
    assert problem("a = 1\na = 2\n").to_do == "use each key and each table only once"


# The file, and the slug, place, finding and remedy of its only problem.
@pytest.mark.parametrize(
    ("text", "slug", "where", "found", "to_do"),
    [
        (
            SHORT.replace("title", "titel"),
            "study-file-unknown-key",
            "line 1, titel",
            "titel",
            "did you mean title?",
        ),
        (
            SHORT.replace('title = "Two servers"\n', ""),
            "study-file-missing-key",
            "title",
            "no such key",
            'title = "Planner improvements"',
        ),
        (
            f"{SHORT}clients = 4\n",
            "study-file-unknown-key",
            "line 6, [workload] clients",
            "clients",
            "it belongs in [load]",
        ),
        (
            f'{SHORT}baseline = "17.8"\n',
            "study-file-unknown-key",
            "line 6, [workload] baseline",
            "baseline",
            "it belongs in the top, above the first [table]",
        ),
        (f"{SHORT}[load]\nclients = 0\n", "study-file-bad-value", "line 7, [load] clients", "0", "clients = 4"),
        (f"{SHORT}[load]\nclients = true\n", "study-file-bad-value", "line 7, [load] clients", "true", "clients = 4"),
        (
            f'{SHORT}[load]\nprotocol = "prepare"\n',
            "study-file-bad-value",
            "line 7, [load] protocol",
            '"prepare"',
            'protocol = "prepared"',
        ),
        (
            SHORT.replace('["16.12", "17.8"]', '["16.12", 17]'),
            "study-file-bad-value",
            "line 3, [factors] server, item 2",
            "17",
            'quote it: "17"',
        ),
        (
            SHORT.replace('["16.12", "17.8"]', '"16.12"'),
            "study-file-bad-value",
            "line 3, [factors] server",
            '"16.12"',
            'server = ["16.12"]',
        ),
        (
            f"{SHORT}[settings]\nbench.delay = 1\n",
            "study-file-bad-value",
            "line 7, [settings] bench",
            "a table",
            'quote a name that contains a dot: "bench.delay" = 1',
        ),
        (
            f"{SHORT}[settings]\nx = 2024-01-01\n",
            "study-file-bad-value",
            "line 7, [settings] x",
            "2024-01-01",
            'x = "on"',
        ),
        (
            f"{SHORT}[settings]\nx = inf\n",
            "study-file-bad-value",
            "line 7, [settings] x",
            "inf",
            'x = "on"',
        ),
        (
            f'{SHORT}[workloads."a b"]\n'.replace("[workload]", "[workloads.a]"),
            "study-file-bad-value",
            'line 6, [workloads."a b"]',
            '"a b"',
            "remove spaces: names are used in labels and folder names",
        ),
        (
            f'{SHORT}[workloads.a]\nsql = "1"\n',
            "study-file-conflict",
            "line 4, [workload]",
            "both",
            "rename [workload] to [workloads.NAME]",
        ),
        (
            f'{SHORT}sql = "SELECT 1"\n',
            "study-file-conflict",
            "line 6, [workload] sql",
            "script and sql",
            'use scripts = [{ script = "a.sql", weight = 2 }, { builtin = "select-only" }] for a mix',
        ),
        (
            'cache = "warm"\n' + SHORT.replace("[workload]", 'cache = ["cold"]\n[workload]'),
            "study-file-conflict",
            "line 1, cache",
            "cache at the top and in [factors]",
            "remove the one at the top",
        ),
        (
            SHORT.replace('script = "query.sql"', ""),
            "study-file-missing-key",
            "line 4, [workload]",
            "none of script, sql, builtin, scripts, operation, command, steps",
            'script = "query.sql"',
        ),
        (
            SHORT.replace('[workload]\nscript = "query.sql"\n', ""),
            "study-file-missing-key",
            "[workload] script",
            "neither [workload] nor [workloads.NAME]",
            '[workload] with script = "query.sql", sql = "SELECT 1;" or operation = "VACUUM t"',
        ),
        (
            SHORT.replace('server = ["16.12", "17.8"]\n', 'jit = ["on", "off"]\n'),
            "study-file-missing-key",
            "line 2, [factors] server",
            "no server in [factors]",
            'server = ["16.12", "17.8"] in [factors]',
        ),
        (
            f"{SHORT}[datasets.x]\n[datasets.y]\n",
            "study-file-missing-key",
            "line 4, [workload] dataset",
            "2 datasets",
            'dataset = "x", or dataset = [...] in [factors] to use several',
        ),
        (
            f'{SHORT}dataset = "smal"\n[datasets.small]\n',
            "study-unknown-level",
            "line 6, [workload] dataset",
            '"smal"',
            'did you mean "small"?',
        ),
        (
            SHORT.replace("[workload]", 'load = ["c4", "c2"]\n[workload]') + "[loads.c4]\n",
            "study-unknown-level",
            "line 4, [factors] load, item 2",
            '"c2"',
            "add [loads.c2]",
        ),
        (
            SHORT.replace("server", "servers", 1)
            .replace('title = "Two servers"', 'title = "t"')
            .replace("server =", "servers ="),
            "study-file-unknown-key",
            "line 3, [factors] servers",
            "servers",
            "did you mean server?",
        ),
        (
            SHORT.replace('"17.8"', '"17,8"'),
            "study-unknown-server",
            "line 3, [factors] server, item 2",
            '"17,8"',
            "write a directory with a slash: ./bin",
        ),
        (
            SHORT.replace("[workload]", 'jit = ["on", true]\n[workload]'),
            "study-repeated-level",
            "line 4, [factors] jit, item 2",
            '"on" again',
            "remove it; only servers, and levels of a compared setting or variable, may be repeated (A/A comparison)",
        ),
        (
            f"{SHORT}[settings]\nport = 5432\n",
            "study-own-setting",
            "line 7, [settings] port",
            "port",
            "remove it: pgversus sets it for each server",
        ),
        (
            f"{SHORT}[settings]\njit = true\nJIT = false\n",
            "study-repeated-setting",
            "line 8, [settings] JIT",
            "jit and JIT",
            "remove one",
        ),
        (
            f'{SHORT}[settings]\n"a=b" = 1\n',
            "study-bad-setting",
            'line 7, [settings] "a=b"',
            '"a=b"',
            'write work_mem = "4MB", and quote a name that contains a dot: "bench.delay" = "1"',
        ),
        (
            SHORT.replace("query.sql", "missing.sql"),
            "study-no-file",
            "line 5, [workload] script",
            "No such file or directory",
            "check the path, which is relative to the study file, and the size and permissions of the file",
        ),
        (
            SHORT.replace('script = "query.sql"', 'builtin = "tpcc"'),
            "study-unknown-builtin",
            "line 5, [workload] builtin",
            '"tpcc"',
            "specify the name of a built-in script, or an unambiguous prefix",
        ),
        (
            SHORT.replace('script = "query.sql"', 'scripts = [{ script = "a", weight = 0 }]'),
            "study-no-weight",
            "line 5, [workload] scripts",
            "a@0",
            "give at least one of them a weight of 1",
        ),
        (
            f"{SHORT}[design]\nmargin = 0.02\n",
            "study-bad-margin",
            "line 7, [design] margin",
            '"0.02"',
            'margin = "0.02%" or margin = "2%"',
        ),
        (
            f'{SHORT}[design]\nbudget = "30x"\n',
            "study-bad-duration",
            "line 7, [design] budget",
            '"30x"',
            'budget = "15m"',
        ),
        (
            f'{SHORT}[design]\nwarm_up = "1.5s"\n',
            "study-bad-window",
            "line 7, [design] warm_up",
            "1.5 s",
            'warm_up = "2"',
        ),
        (
            f'{SHORT}[design]\npin = "first"\n',
            "study-bad-pin",
            "line 7, [design] pin",
            '"first"',
            'pin = "auto"',
        ),
        (
            f'{SHORT}[design]\nblocks = 5\nbudget = "5m"\n',
            "study-two-designs",
            "line 7, [design] blocks",
            "blocks with budget",
            "remove blocks to stop as soon as the answer is known, or omit the others (also --budget)",
        ),
        (
            f'{SHORT}[design]\nblocks = 5\nprecision = "3%"\n',
            "study-two-designs",
            "line 7, [design] blocks",
            "blocks with precision",
            "remove blocks to stop as soon as the answer is known, or omit the others (also --budget)",
        ),
        (
            f'{SHORT}[design]\nprecision = "0.03"\n',
            "study-bad-precision",
            "line 7, [design] precision",
            '"0.03"',
            'precision = "0.03%" or precision = "3%"',
        ),
        (
            f"{SHORT}[load]\nrate = 5e-324\n",
            "study-file-bad-value",
            "line 7, [load] rate",
            "5e-324",
            "rate = 100",
        ),
        (
            f'{SHORT}[load]\nrate = 10\n[design]\nmetric = "tps"\n',
            "study-rate-and-tps",
            "line 9, [design] metric",
            "tps",
            "remove metric to compare p95 latency under a rate, or remove rate",
        ),
        (
            SHORT.replace('["16.12", "17.8"]', '["16.12"]'),
            "study-one-arm",
            "line 2, [factors]",
            "no factor has two levels",
            'server = ["16.12", "17.8"] or work_mem = ["4MB", "64MB"] in [factors]',
        ),
        (
            'compare = "workload"\n' + SHORT,
            "study-one-arm",
            "line 1, compare",
            "workload has 1",
            'server = ["16.12", "17.8"] or work_mem = ["4MB", "64MB"] in [factors]',
        ),
        (
            'compare = "load"\n' + MATRIX,
            "study-file-bad-value",
            "line 1, compare",
            '"load"',
            "leave load in [factors]: each of its levels is compared separately",
        ),
        (
            'compare = "jti"\n' + MATRIX,
            "study-unknown-level",
            "line 1, compare",
            "jti",
            "did you mean jit?",
        ),
        (
            SHORT.replace('["16.12", "17.8"]', '["17"]\njit = ["on", "off"]\ngeqo = ["on", "off"]'),
            "study-file-missing-key",
            "compare",
            "two or more levels of jit, geqo",
            'compare = "geqo", above the first [table]',
        ),
        (
            'baseline = "17.9"\n' + SHORT,
            "study-unknown-level",
            "line 1, baseline",
            '"17.9"',
            'did you mean server = "17.8"?',
        ),
        (
            f'{MATRIX}[[exclude]]\nlaod = "c1"\n',
            "study-unknown-level",
            "line 11, [[exclude]] laod",
            "laod",
            "did you mean load?",
        ),
        (
            f'{MATRIX}[[only]]\nload = "c2"\n',
            "study-unknown-level",
            "line 11, [[only]] load",
            '"c2"',
            'did you mean load = "c24"?',
        ),
        (
            f'{MATRIX}[[only]]\nload = ["c1"]\n',
            "study-file-bad-value",
            "line 11, [[only]] load",
            "a list",
            "write one level in each [[only]]",
        ),
        (
            f"{MATRIX}[[exclude]]\n",
            "study-file-missing-key",
            "line 10, [[exclude]]",
            "an empty table",
            'server = "16.12"',
        ),
        (
            f'{MATRIX}[[only]]\nload = "c1"\n[[exclude]]\nload = "c24"\n',
            "study-no-match",
            "line 12, [[exclude]]",
            "these levels match no combination that would otherwise be measured",
            "remove it, or fix its levels",
        ),
        (
            f'{MATRIX}[[exclude]]\nserver = "17.8"\n',
            "study-no-context",
            "line 10, [[exclude]]",
            "every combination, or every contender, is excluded",
            "remove the [[exclude]] or [[only]] that excludes too much",
        ),
        (
            f'{MATRIX}[[exclude]]\nload = "c1"\njit = "on"\n[[exclude]]\nserver = "16.12"\nload = "c24"\n',
            "study-lost-baseline",
            "line 13, [[exclude]]",
            "no server 16.12 in load=c24 jit=on and 1 more",
            "exclude the contenders there as well, or choose another baseline",
        ),
        (
            f'{MATRIX}[[only]]\nserver = "17.8"\n',
            "study-lost-baseline",
            "line 10, [[only]]",
            "no server 16.12 in load=c1 jit=on and 3 more",
            "exclude the contenders there as well, or choose another baseline",
        ),
        (
            SHORT.replace('["16.12", "17.8"]', f'["17"]\nx = {list(range(52))}'),
            "study-too-many-arms",
            "line 4, [factors] x",
            "52 levels of x",
            "remove levels, or split the comparison",
        ),
        (
            SHORT.replace("[workload]", "\n".join(f"x{i} = {list(range(50))}" for i in range(40)) + "\n[workload]"),
            "study-too-many-treatments",
            "line 2, [factors]",
            "2 x " + " x ".join(["50"] * 40) + f" = {2 * 50**40}",
            "remove levels, or split the study",
        ),
    ],
)
def test_each_problem_names_place_finding_and_remedy(text: str, slug: str, where: str, found: str, to_do: str) -> None:
    error = problem(text)
    assert (error.slug, error.where, error.found, error.to_do) == (slug, f"planner.toml, {where}", found, to_do)
    assert error.expected
    assert error.what[0] == error.what[0].lower() or error.what.startswith("PostgreSQL")


def test_a_script_that_is_not_utf_8_is_reported() -> None:
    error = problem(SHORT.replace("query.sql", "latin.sql"))
    assert error.slug == "study-script-encoding"
    assert error.to_do == "convert it to UTF-8, for example: iconv -f LATIN1 -t UTF-8 OLD > NEW"


def test_all_problems_are_reported_in_file_order() -> None:
    text = """\
title = "t"
compare = "sever"
[factors]
server = ["16.12", "17,8"]
jit = ["on", "on"]
[settings]
port = 1
[workload]
scirpt = "a.sql"
[load]
clients = "4"
[design]
budget = "soon"
max_blocks = 1
[[exclude]]
jit = "of"
"""
    with pytest.raises(StudyFileError) as caught:
        study(text)
    error = caught.value
    assert (error.what, error.slug, error.where) == ("the study file has 9 problems", "study-file", "planner.toml")
    assert error.exit_code is ExitCode.USAGE
    assert [(one.slug, one.where.removeprefix("planner.toml, ")) for one in error.problems] == [
        ("study-unknown-level", "line 2, compare"),
        ("study-unknown-server", "line 4, [factors] server, item 2"),
        ("study-repeated-level", "line 5, [factors] jit, item 2"),
        ("study-own-setting", "line 7, [settings] port"),
        ("study-file-unknown-key", "line 9, [workload] scirpt"),
        ("study-file-bad-value", "line 11, [load] clients"),
        ("study-bad-duration", "line 13, [design] budget"),
        ("study-file-bad-value", "line 14, [design] max_blocks"),
        ("study-unknown-level", "line 16, [[exclude]] jit"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        SHORT.replace("[factors]", "[factor]"),
        SHORT.replace("[workload]", "[wrokload]"),
        SHORT.replace("script", "scrpit"),
        f'{SHORT}dataset = "x"\n[datset.x]\n',
        f'{SHORT}dataset = "x"\n[datasets."x y"]\n',
        SHORT.replace('["16.12", "17.8"]', "[16, 17]"),
        'compare = "jit"\n' + SHORT.replace("[workload]", "jit = 1\n[workload]"),
        f'{SHORT}[[only]]\njit = "on"\n'.replace("[workload]", "jit = 1\n[workload]"),
    ],
)
def test_one_mistake_is_reported_without_its_consequences(text: str) -> None:
    assert {one.slug for one in problems(text)} <= {"study-file-unknown-key", "study-file-bad-value"}


def test_passwords_are_never_shown() -> None:
    uri = "postgresql://me:secret@host/db?password=secret"
    texts = [
        SHORT.replace('["16.12", "17.8"]', f'"{uri}"'),
        f'baseline = "{uri}"\n{SHORT}',
        f'{SHORT}[[exclude]]\nserver = "{uri}"\n',
        f'{SHORT}[[exclude]]\n"{uri}" = 1\n',
        f'{SHORT}[[exclude\nserver = "{uri}"\n',
        f'title = "t"\nserver = "{uri}',
    ]
    for text in texts:
        for one in problems(text):
            shown = f"{one.what} {one.where} {one.found} {one.expected} {one.to_do}"
            assert "secret" not in shown


def test_an_error_from_name_server_keeps_its_slug_and_gets_a_place() -> None:
    def name_server(text: str) -> tuple[str, ServerName]:
        raise StudyError("no", slug="study-unknown-server", found=text)

    with pytest.raises(StudyFileError) as caught:
        read_study(SHORT, name="x.toml", read=read_file, find_dump=find_dump, seed=1, name_server=name_server)
    assert [(one.slug, one.where) for one in caught.value.problems] == [
        ("study-unknown-server", "x.toml, line 3, [factors] server, item 1"),
        ("study-unknown-server", "x.toml, line 3, [factors] server, item 2"),
    ]


def test_excessive_combinations_are_rejected_without_expansion() -> None:
    levels = "\n".join(f"x{i} = {list(range(1000))}" for i in range(9))
    assert problem(SHORT.replace("[workload]", f"{levels}\n[workload]")).slug == "study-too-many-treatments"


def test_long_lists_are_truncated_and_long_names_get_no_suggestion() -> None:
    text = SHORT.replace("[workload]", f"x = {list(range(5000))}\n[workload]") + '[[only]]\nx = "none"\n' * 20
    found = problems(text)
    assert len(found) == 20
    assert found[0].expected.endswith('or "23" and 4976 more')
    assert problem(f'baseline = "{"9" * 100_000}"\n{SHORT}').to_do.startswith("add it to server")


@pytest.mark.parametrize("name", ["load", "Scale", "CACHE"])
def test_factors_that_cannot_be_compared_are_rejected_in_any_case(name: str) -> None:
    assert problem(f'compare = "{name}"\n{MATRIX}').slug == "study-file-bad-value"


def test_an_error_from_reading_files_keeps_its_remedy() -> None:
    def read(path: str) -> tuple[str, bytes]:
        raise StudyError("outside", slug="study-no-file", found=path, expected="inside", to_do="move it")

    with pytest.raises(StudyFileError) as caught:
        read_study(SHORT, name="x.toml", read=read, find_dump=find_dump, seed=1)
    (found,) = caught.value.problems
    assert (found.what, found.to_do, found.where) == ("outside", "move it", "x.toml, line 5, [workload] script")
