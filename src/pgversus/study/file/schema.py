"""The one schema of a study file: every table and key with its type, default and meaning.

From these models come the check of a file, the messages about it, docs/study-file.md and docs/study-file.schema.json.
What needs more than one key to be judged (does that workload exist? does this exclude anything?) is checked elsewhere.
"""

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, WithJsonSchema
from pydantic_core import PydanticCustomError

from pgversus.study.build_options import BuildProfile, BuildSystem
from pgversus.study.comparison import CacheState
from pgversus.study.counters import COUNTERS
from pgversus.study.design import FIRST_LOOK, MOST_BLOCKS
from pgversus.study.metrics import BY_NAME
from pgversus.study.workload import VARIABLE_NAME, QueryMode

LARGEST_INT = 2**31 - 1
# pgbench's own limit of counts: a C int.
LARGEST_INTEGER = 2**63 - 1
# TOML's own.
_LARGEST_WEIGHT = 999_999_999
_LEAST_FIXED = 2


def _as_configured(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return _as_written(value)


def _as_pgbench_variable(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else _as_written(value)


def _as_written(value: object) -> str:
    if isinstance(value, str) and "\0" not in value:
        return value
    is_integer = isinstance(value, int) and abs(value) <= LARGEST_INTEGER
    is_number = isinstance(value, float) and math.isfinite(value)
    if not isinstance(value, bool) and (is_integer or is_number):
        return repr(value)
    raise PydanticCustomError("value", "not a value")


def _as_quantity(value: object) -> str:
    if isinstance(value, str) and value in QUANTITIES:
        return value
    raise PydanticCustomError("quantity", "neither metric nor counter")


_SCALAR = {"type": ["string", "number", "boolean"]}
QUANTITIES = (*BY_NAME, *COUNTERS)
"""What can be shown of a trial besides the metric that carries the verdict."""

Text = Annotated[str, Field(min_length=1, pattern=r"^[^\u0000]*$")]
Name = Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[\w.+:@-]+$")]
"""Of a workload, dataset, load or profile: it stands in labels and in names of folders."""
Value = Annotated[str, BeforeValidator(_as_configured), WithJsonSchema(_SCALAR)]
"""Of a setting: text as postgresql.conf has it."""
VariableName = Annotated[str, Field(min_length=1, pattern=f"^{VARIABLE_NAME}$")]
VariableValue = Annotated[str, BeforeValidator(_as_pgbench_variable), WithJsonSchema(_SCALAR)]
Quantity = Annotated[str, BeforeValidator(_as_written), WithJsonSchema({"type": ["string", "number"]})]
"""A length of time or a share; a plain number means what it means on the command line."""
QuantityName = Annotated[
    str, BeforeValidator(_as_quantity), WithJsonSchema({"type": "string", "enum": list(QUANTITIES)})
]
Count = Annotated[int, Field(ge=1, le=LARGEST_INT)]
Cache = Annotated[CacheState, Field(strict=False)]
# TOML has no enums: the text is turned into one, in a schema that otherwise turns nothing into anything.


def _key(meaning: str, *, default: str, example: Any) -> Any:
    """A key that may be absent. default: in words, for the reference; example: a value that is accepted."""
    return Field(default=None, description=meaning, examples=[example], json_schema_extra={"x-default": default})


class Table(BaseModel):
    """What all tables of a study file have in common: nothing is guessed, and nothing unknown is let through."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class FactorsTable(Table):
    """What is varied. Each key is a factor, its list the levels; every combination of levels is measured.

    Every name but `server`, `workload`, `dataset`, `load`, `scale`, `cache` and `variables` is a PostgreSQL setting,
    with its levels as they would stand in `postgresql.conf`; numbers, `true` and `false` may stand without quotes. The
    name of an extension's setting has a dot in it and is quoted: `"auto_explain.log_timing" = ["on", "off"]`.

    `[factors.variables]` is a table of variables, each a factor: its levels are given to the scripts of every load
    (`-D`) and to the files of `prepare` of every operation. It is named like any other factor: `compare = "dead"`, and
    `dead = 70` in `[[exclude]]`. So no variable has the name of a setting that the file gives, or of one of the above.
    """

    # A level of any setting; pydantic puts what is not named below here.
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Annotated[list[Value], Field(min_length=1)]] = Field(init=False)

    server: Annotated[list[Text], Field(min_length=1)] | None = _key(
        "servers: a version (`17`, `17.8`, `wheel:17.11`, `zonky:17.8`), a bin directory, or a connection URI; or what "
        "is built from source: a version with options (`17+blocksize=16`, `17+cassert`), a source tree, a commit of "
        "one (`./postgres@REF`), a tarball, its address. The same server twice is an A/A comparison",
        default="none: one at least must be named",
        example=["16.12", "17.8"],
    )
    workload: Annotated[list[Text], Field(min_length=1)] | None = _key(
        "names from `[workloads]`", default="all of them, in the order of the file", example=["cte_in", "range"]
    )
    dataset: Annotated[list[Text], Field(min_length=1)] | None = _key(
        "names from `[datasets]`; every workload then runs on each of them, whatever its own `dataset` says",
        default="no factor: each workload has its own",
        example=["small", "large"],
    )
    load: Annotated[list[Text], Field(min_length=1)] | None = _key(
        "names from `[loads]`", default="all of them, in the order of the file", example=["c1", "c24"]
    )
    scale: Annotated[list[Count], Field(min_length=1)] | None = _key(
        "scale factors of pgbench's tables; each replaces the dataset's own `scale`",
        default="no factor: the dataset's own",
        example=[10, 100],
    )
    cache: Annotated[list[Cache], Field(min_length=1)] | None = _key(
        "cache states; instead of the key `cache` at the top",
        default="no factor: `cache` at the top",
        example=["warm", "cold"],
    )
    variables: dict[VariableName, Annotated[list[VariableValue], Field(min_length=1)]] | None = _key(
        "variables, each with the list of its levels; a workload's own `variables` of that name give way",
        default="none",
        example={"dead": [3, 20, 50, 70], "rows": ["spread", "contiguous"]},
    )


class ScriptEntry(Table):
    """One script of a mix: exactly one of `script`, `sql` and `builtin`."""

    script: Text | None = _key("a pgbench script file", default="none", example="query.sql")
    sql: Text | None = _key("the script itself", default="none", example="SELECT 1;")
    builtin: Text | None = _key("a built-in script of pgbench (`-b`)", default="none", example="select-only")
    weight: Annotated[int, Field(ge=0, le=_LARGEST_WEIGHT)] | None = _key(
        "how often it runs, in proportion to the others (`@` of pgbench)", default="1", example=2
    )


class StepEntry(Table):
    """One step of an operation: exactly one of `sql` and `command`."""

    name: Text | None = _key("what its time is called", default="its statement, or its program", example="dump")
    sql: Text | None = _key("one SQL statement", default="none", example="CREATE INDEX ON pgbench_accounts (bid)")
    command: Text | None = _key("a program, as `command` of a workload", default="none", example="pg_dump -f db.sql")


class WorkloadTable(Table):
    """What is run and timed: exactly one of `script`, `sql`, `builtin`, `scripts`, `operation`, `command` and `steps`.

    The first four are run by pgbench, again and again, under a load. The last three are an operation: something that is
    done once to a state, such as VACUUM. Every block does it once on each arm, on a fresh copy of the data; its time is
    what is compared. It has no load, no windows and no warm-up.

    A study with one workload has `[workload]`; one with several has `[workloads.NAME]` for each.
    Paths are relative to the study file.
    """

    script: Text | None = _key("a pgbench script file (`-f`)", default="none", example="query.sql")
    sql: Text | None = _key("the script itself", default="none", example="SELECT count(*) FROM pgbench_accounts;")
    builtin: Text | None = _key("a built-in script of pgbench (`-b`)", default="none", example="tpcb-like")
    scripts: Annotated[list[ScriptEntry], Field(min_length=1)] | None = _key(
        "a mix: tables of one script each, with its `weight`",
        default="none",
        example=[{"script": "query.sql", "weight": 2}, {"builtin": "select-only"}],
    )
    operation: Text | None = _key(
        "one SQL statement that is done once and timed", default="none", example="VACUUM (VERBOSE) pgbench_accounts"
    )
    command: Text | None = _key(
        "a program that is run once and timed, quoted as in a shell, which it does not go through; it finds its arm by "
        "`PGHOST`, `PGPORT`, `PGUSER`, `PGDATABASE` and `PGDATA`, and runs in a directory of its own, with pgversus' "
        "`psql` and `pg_dump` first in its `PATH`",
        default="none",
        example="pg_dump -Fc -f db.dump",
    )
    steps: Annotated[list[StepEntry], Field(min_length=1)] | None = _key(
        "an operation of several steps, in order, each with a time of its own",
        default="none",
        example=[{"name": "index", "sql": "CREATE INDEX ON t (a)"}, {"command": "pg_dump -f db.sql"}],
    )
    prepare: list[Text] | None = _key(
        "SQL files that psql runs once on what was loaded, to make the state that an operation needs",
        default="none",
        example=["dirty.sql"],
    )
    prepare_sql: Text | None = _key(
        "SQL for the same, after the files of `prepare`",
        default="none",
        example="UPDATE pgbench_accounts SET abalance = 1 WHERE aid % 100 < :dead;",
    )
    verify: Text | None = _key(
        "SQL that must return nothing but true after an operation, or its trial has failed",
        default="none",
        example="SELECT n_dead_tup = 0 FROM pg_stat_user_tables WHERE relname = 'pgbench_accounts'",
    )
    rewrite: Text | None = _key(
        "a script file that asks for the same as `script` or `sql` in words that a newer server plans as the baseline "
        "plans those; it is not compared: what a changed plan accounts for is measured with it",
        default="none: a setting is looked for that brings the old plan back",
        example="query_rewritten.sql",
    )
    dataset: Name | None = _key(
        "the name of its dataset, from `[datasets]`", default="the only dataset", example="small"
    )
    variables: dict[VariableName, VariableValue] | None = _key(
        "variables for the scripts (`-D`), or for what prepares an operation",
        default="none",
        example={"rows": 1000},
    )
    settings: dict[str, Value] | None = _key(
        "settings of every arm while this workload runs; a factor of the same name wins",
        default="none",
        example={"enable_hashagg": "off"},
    )


class DatasetTable(Table):
    """What is loaded into each arm: pgbench's tables, then the files of `setup`, then `sql`.

    A study with one dataset has `[dataset]`; one with several has `[datasets.NAME]` for each. Paths are relative to the
    study file.
    """

    scale: Count | None = _key("pgbench's tables at this scale factor (`-i -s`)", default="no such tables", example=10)
    setup: list[Text] | None = _key("SQL files that psql runs once in each arm", default="none", example=["tables.sql"])
    sql: Text | None = _key(
        "SQL that psql runs once in each arm, after the files of `setup`",
        default="none",
        example="CREATE INDEX ON pgbench_accounts (bid);",
    )
    full_statistics: StrictBool | None = _key(
        "whether tables are analyzed with the largest statistics target, so that no plan differs because of another "
        "sample",
        default="`false`",
        example=True,
    )


class LoadTable(Table):
    """How hard the workload is run, in pgbench's own terms.

    A study with one load has `[load]`; one with several has `[loads.NAME]` for each.
    """

    clients: Count | None = _key("clients (`-c`)", default="1", example=4)
    threads: Count | None = _key(
        "threads of pgbench (`-j`); of more than clients it makes no use", default="1", example=2
    )
    protocol: Annotated[QueryMode, Field(strict=False)] | None = _key(
        "query mode (`-M`)", default='`"simple"`', example="prepared"
    )
    rate: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = _key(
        "transactions per second over all clients, started on a schedule (`-R`); latency then carries the verdict",
        default="none: as fast as it goes",
        example=100,
    )
    window: Quantity | None = _key(
        "length of one window under this load: `50ms`, `2s`, or `20tx` (transactions of each client)",
        default="that of the design",
        example="10s",
    )


class DesignTable(Table):
    """How the answer is sought: as the flags of `pgversus compare`."""

    metric: Literal["tps", "latency_mean", "latency_p50", "latency_p95", "time"] | None = _key(
        "what carries the verdict; under a `rate` not `tps`, which would be the same for every arm; `time` is that of "
        "an operation, which has no other",
        default="`tps`; under a `rate` `latency_p95`; of an operation `time`",
        example="latency_p95",
    )
    margin: Quantity | None = _key(
        "the smallest difference that matters, in percent",
        default="`2%`; for `latency_p95` and `time` `5%`",
        example="3%",
    )
    budget: Quantity | None = _key(
        "wall-clock time for the blocks of all comparisons together: `90s`, `15m`, `2h`",
        default="`15m`",
        example="30m",
    )
    blocks: Annotated[int, Field(ge=_LEAST_FIXED, le=LARGEST_INT)] | None = _key(
        "exactly so many blocks for each comparison and one look at the end; without `budget` and `max_blocks`",
        default="as many as the answer needs",
        example=10,
    )
    max_blocks: Annotated[int, Field(ge=FIRST_LOOK, le=MOST_BLOCKS)] | None = _key(
        "stop a comparison undecided after so many blocks", default=f"{MOST_BLOCKS}", example=40
    )
    window: Quantity | None = _key(
        "length of one window: `50ms`, `2s`, or `20tx` (transactions of each client)",
        default="fitted to the load",
        example="50ms",
    )
    windows: Count | None = _key("windows of each arm in one block", default="fitted to the load", example=8)
    warm_up: Quantity | None = _key(
        "load thrown away after each start, in whole seconds; from two on up to four times as long, until it is steady",
        default="`2s`; with short windows less",
        example="5s",
    )
    pin: Quantity | None = _key(
        "whether client and servers have processors of their own: `auto` (on hosts with four or more), `off`, or the "
        "client's by number, such as `0-1`; the servers have the rest",
        default="`auto`",
        example="off",
    )
    seed: Annotated[int, Field(ge=0, le=LARGEST_INTEGER)] | None = _key(
        "of everything random; stored with the results", default="drawn", example=42
    )


class Sections(Table):
    """Everything that a profile may change."""

    question: Text | None = _key(
        "what is asked, in words", default="none", example="Is 17 faster than 16 where its planner improved?"
    )
    compare: Text | None = _key(
        "the factor whose levels are held against each other: `server`, `workload`, `dataset`, a setting or a "
        "variable. For each combination of the others there is one comparison",
        default="the only one of these with two or more levels; else `server`, if it has them; else it must be said; "
        "a variable only where nothing else has two",
        example="server",
    )
    baseline: Value | None = _key(
        "the level of it that all others are held against", default="the first", example="16.12"
    )
    cache: Cache | None = _key(
        "`warm`: the data are read in and the load has run for a while; `cold`: every window begins on a server just "
        "started, its data out of the system's page cache",
        default='`"warm"`',
        example="cold",
    )
    if_missing: Literal["error", "skip"] | None = _key(
        "what happens where a server lacks a setting that another one has: `error`, or `skip` that combination",
        default='`"error"`',
        example="skip",
    )
    published: Text | None = _key(
        "a CSV file of published figures that are shown beside the measured ones: `level` (of what is compared), "
        "`tps`, or `time_s` of an operation, and what tells contexts apart, such as `workload` and `clients`",
        default="none",
        example="published.csv",
    )
    metrics: list[QuantityName] | None = _key(
        "metrics and counters that are shown for each comparison besides the metric that carries the verdict",
        default="the most memory that the server held",
        example=["latency_p95", "temp_bytes"],
    )
    factors: FactorsTable | None = _key("what is varied", default="none", example={"server": ["16.12", "17.8"]})
    build_profile: Annotated[BuildProfile, Field(strict=False)] | None = _key(
        "how much is built of servers from source: `minimal` is what a comparison runs, `full` is all of PostgreSQL "
        "with the libraries that distributions build with (`--build-profile`)",
        default='`"minimal"`',
        example="full",
    )
    build_system: Annotated[BuildSystem, Field(strict=False)] | None = _key(
        "by what servers are built from source: `configure` or `meson` (`--build-system`)",
        default="`configure`, where the source has it",
        example="meson",
    )
    settings: dict[str, Value] | None = _key(
        "PostgreSQL settings of every arm, as in `postgresql.conf`; a workload's setting or a factor of the same name "
        "wins",
        default="none",
        example={"shared_buffers": "256MB"},
    )
    workload: WorkloadTable | None = _key(
        "the only workload; its name is that of its script", default="none", example={"script": "query.sql"}
    )
    workloads: dict[Name, WorkloadTable] | None = _key(
        "several workloads, by name", default="none", example={"cte_in": {"script": "cte_in.sql"}}
    )
    dataset: DatasetTable | None = _key("the only dataset", default="nothing is loaded", example={"scale": 10})
    datasets: dict[Name, DatasetTable] | None = _key(
        "several datasets, by name", default="none", example={"small": {"scale": 10}}
    )
    load: LoadTable | None = _key("the only load; operations have none", default="one client", example={"clients": 4})
    loads: dict[Name, LoadTable] | None = _key("several loads, by name", default="none", example={"c4": {"clients": 4}})
    design: DesignTable | None = _key(
        "how the answer is sought", default="as `pgversus compare`", example={"margin": "3%"}
    )
    exclude: list[dict[str, Value]] | None = _key(
        "combinations that are left out: those that have all the levels of one of these tables",
        default="none",
        example=[{"server": "18.0", "load": "c24"}],
    )
    only: list[dict[str, Value]] | None = _key(
        "if there are any, only combinations that have all the levels of one of these tables are measured",
        default="all combinations",
        example=[{"workload": "cte_in"}],
    )


class StudyTable(Sections):
    """A study file: a question, and everything that is needed to answer it."""

    title: Text = Field(description="one line for reports", examples=["Planner improvements"])
    profiles: dict[Name, Sections] | None = _key(
        "changes to the rest of the file, by name. Tables are merged key by key; everything else is replaced",
        default="none",
        example={"quick": {"design": {"budget": "5m"}}},
    )
