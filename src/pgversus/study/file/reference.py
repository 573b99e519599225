"""docs/study-file.md and docs/study-file.schema.json, made from the schema.

`make docs` writes both; a test holds them to the schema.
"""

import json
from collections.abc import Iterator, Mapping

from pgversus.study.counters import COUNTERS
from pgversus.study.design import MOST_CONTENDERS
from pgversus.study.file.contexts import MOST_TREATMENTS
from pgversus.study.file.description import Schema, in_words, json_schema, schema_at
from pgversus.study.file.document import Path, as_key, as_toml
from pgversus.study.metrics import BY_NAME

SHORT_EXAMPLE = """\
title = "Sorting accounts with more memory"

[factors]
server = ["17.8"]
work_mem = ["4MB", "64MB"]

[workload]
sql = "SELECT DISTINCT bid, aid FROM pgbench_accounts ORDER BY bid, aid LIMIT 10000;"

[dataset]
scale = 10
"""

OPERATION_EXAMPLE = """\
title = "VACUUM of a table with dead rows"

[factors]
server = ["15.10", "16.6"]
maintenance_work_mem = ["16MB", "64MB"]

[factors.variables]
dead = [3, 20, 50, 70]

[workload]
operation = "VACUUM pgbench_accounts"
prepare_sql = "UPDATE pgbench_accounts SET abalance = 1 WHERE aid % 100 < :dead;"

[dataset]
scale = 10
"""

LONG_EXAMPLE = """\
title = "Four majors, two statements, two loads"
question = "Does each major do at least as well as 15?"
compare = "server"
baseline = "15.14"

[factors]
server = ["15.14", "16.10", "17.6", "18.0"]
load = ["c1", "c24"]
scale = [50, 500]
jit = [true, false]

[settings]
shared_buffers = "256MB"
max_connections = 200

[workloads.distinct]
script = "distinct.sql"

[workloads.group_by]
sql = "SELECT aid, bid, max(abalance) FROM pgbench_accounts GROUP BY aid, bid;"
settings = { enable_hashagg = true }

[workloads.mix]
scripts = [{ builtin = "select-only", weight = 9 }, { script = "report.sql" }]
variables = { rows = 1000 }

[dataset]
setup = ["indexes.sql"]
sql = "ANALYZE;"

[loads.c1]
clients = 1

[loads.c24]
clients = 24
threads = 12
protocol = "prepared"

[design]
metric = "latency_p95"
margin = "3%"
budget = "8h"

# The mix is of interest with 24 clients only.
[[exclude]]
workload = "mix"
load = "c1"

# 18.0 is left out where it would take too long.
[[exclude]]
server = "18.0"
scale = 500

[profiles.quick]
factors = { server = ["15.14", "18.0"], scale = [50], jit = [true] }
design = { budget = "30m" }
exclude = []

[profiles.published.design]
budget = "72h"
"""

_BEGIN = """\
# The study file

<!-- Made by `make docs` from src/pgversus/study/file/schema.py. -->

A study is a question and everything that is needed to answer it, in one [TOML](https://toml.io) file. This is one:
"""

_HOW = f"""\
It gives one verdict: 64 MB against 4 MB. Here is what holds for every study:

- The levels of one factor are **compared**; the first of them is the baseline. For each combination of the other
  factors there is one comparison, decided by blocks of its own.
- What is not said has a default. One workload, dataset or load is written `[workload]`, `[dataset]`, `[load]`; several
  have names: `[workloads.NAME]`, `[datasets.NAME]`, `[loads.NAME]`.
- Files are found from where the study file is, and read once when the study begins.
- A setting may stand in `[settings]` for all, in a workload, or among the factors. The later of these wins; small
  letters and capitals are the same in names of settings.
- A comparison has at most {MOST_CONTENDERS} contenders, a study at most {MOST_TREATMENTS:,} combinations.
- A mistake is never guessed away. All mistakes of a file are told at once, each with its line.
- A study that runs programs, connects to servers, builds source of its choice, names a bin directory, or reads files
  outside of its folder runs only with your consent: `--trust`, or a yes when asked. `--dry-run` lists all of it.

An editor that knows JSON schemas helps while you type: `docs/study-file.schema.json`.

Work that is done once to a state, and destroys it, is an **operation**. What was loaded is brought into that state
once, and every block begins on a fresh copy of it. This file asks for eight comparisons, one for each share of dead
rows and each amount of memory:
"""

_SECTIONS: tuple[tuple[str, Path, str], ...] = (
    ("[factors]", ("factors",), "FactorsTable"),
    ("[settings]", ("settings",), ""),
    ("[workload], [workloads.NAME]", ("workload",), "WorkloadTable"),
    ("A script in `scripts`", ("workload", "scripts", 0), "ScriptEntry"),
    ("A step in `steps`", ("workload", "steps", 0), "StepEntry"),
    ("[dataset], [datasets.NAME]", ("dataset",), "DatasetTable"),
    ("[load], [loads.NAME]", ("load",), "LoadTable"),
    ("[design]", ("design",), "DesignTable"),
)
"""Title, path, and the model that describes it; where there is none, the key itself does."""

_FILES = """\
## Who reads the files

pgversus reads scripts and setup files itself. As an ordinary user it runs everything else as that user. As root it runs
psql, pgbench, the programs that they start, and commands as the user that servers run as: `nobody`, or the one that
`--run-as` names.

- A script may lie anywhere. pgbench gets a copy that its user alone can read.
- A setup file, or one of `prepare`, may lie anywhere too. psql reads it where it lies if its user can; otherwise it
  reads a copy, beside which `\\ir` finds nothing, so that a file with `\\ir` in it is refused.
- Files that these read themselves (`\\i`, `\\ir`, `\\copy`) must be open to that user, with every directory above them.
  `/root` is not. Relative names count from the directory in which pgversus was started; where that user cannot enter
  it, from `/`.
- Commands run in an empty directory of their own.
"""

_ROWS = """\
## [[exclude]], [[only]]

Not every combination makes sense. Each `[[exclude]]` is a table of factors and levels, and leaves out every
combination that has all of them. If there are `[[only]]` tables, a combination must have all levels of one of them.
Factors that are not varied can be named too: `workload`, `load` and `cache` always have a level.

A comparison that loses all its contenders goes; one that loses its baseline and keeps a contender is an error, and so
is an `[[exclude]]` that leaves nothing out.

```toml
[[exclude]]
server = "18.0"
load = "c24"
```

## [profiles.NAME]

A profile changes the rest of the file: any key but `title` and `profiles`. Tables are merged key by key; everything
else, lists included, is replaced. `pgversus run STUDY --profile NAME` takes a profile; without it `quick` holds, where
the file has one.

```toml
[profiles.quick.factors]
scale = [10]
```

## Everything together
"""

_QUANTITIES = """\
## Metrics and counters

`metrics` names what is shown for each comparison besides the verdict: {metrics}, or one of these counters. Every trial
has them all, in the results and in the tables of trials; one that a version or a host does not tell is absent.
"""


def page() -> str:
    """docs/study-file.md."""
    parts = [_BEGIN, _fenced(SHORT_EXAMPLE), _HOW, _fenced(OPERATION_EXAMPLE), _top()]
    parts += [_section(*section) for section in _SECTIONS]
    parts += [_FILES, _ROWS, _fenced(LONG_EXAMPLE), _quantities()]
    return "\n".join(parts).rstrip() + "\n"


def schema_document() -> str:
    """docs/study-file.schema.json."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def _top() -> str:
    schema = schema_at(())
    # Tables have sections of their own.
    keys = {name: part for name, part in schema["properties"].items() if not _is_table(part)}
    said = "These stand above the first table. `title` is the only key that must be there."
    return "\n".join(["## At the top", "", said, "", *_key_table(keys), ""])


def _section(title: str, path: Path, model: str) -> str:
    schema = schema_at(path)
    description = json_schema()["$defs"][model]["description"] if model else schema["description"]
    lines = [f"## {title}", "", _unwrapped(description), ""]
    if "properties" in schema:
        lines += _key_table(schema["properties"])
    else:
        lines += ["```toml", f"[{path[-1]}]"]
        lines += [f"{as_key(key)} = {as_toml(value)}" for key, value in schema["examples"][0].items()]
        lines.append("```")
    return "\n".join([*lines, ""])


def _quantities() -> str:
    """What `metrics` may name."""
    counters = (
        f"| `{name}` | {counter.unit.value}{' per transaction' if counter.per_transaction else ''} "
        f"| {counter.description} |"
        for name, counter in COUNTERS.items()
    )
    lines = [_QUANTITIES.format(metrics=", ".join(f"`{name}`" for name in BY_NAME)), "| counter | unit | what it is |"]
    return "\n".join([*lines, "|---|---|---|", *counters])


def _is_table(schema: Schema) -> bool:
    return "object" in (schema["type"], schema.get("items", {}).get("type"))


def _key_table(keys: Mapping[str, Schema]) -> Iterator[str]:
    yield "| key | type | default | meaning |"
    yield "|---|---|---|---|"
    for name, part in keys.items():
        example = f"for example `{as_toml(part['examples'][0])}`"
        default = part.get("x-default", "must be there")
        yield f"| `{name}` | {_kind(part)} | {default} | {part['description']}; {example} |"


def _kind(schema: Schema) -> str:
    words = in_words(schema).replace("text in quotes, not empty", "text")
    return words.replace(" with one item or more", "").replace(": a ", ": ").removeprefix("a ")


def _unwrapped(text: str) -> str:
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    capital = [paragraph[:1].upper() + paragraph[1:] for paragraph in paragraphs]
    return "\n\n".join(paragraph if paragraph.endswith(".") else f"{paragraph}." for paragraph in capital)


def _fenced(example: str) -> str:
    return f"```toml\n{example}```\n"
