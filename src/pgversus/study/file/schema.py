"""The schema of a study file: every table and key with its type, default and meaning.

These models are the source for checking files, for error messages, and for docs/study-file.md and
docs/study-file.schema.json. Checks that involve several keys (does that workload exist? does this exclude anything?)
are made elsewhere.
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StrictBool

from pgversus.study.build_options import BuildProfile, BuildSystem
from pgversus.study.design import FIRST_LOOK, LEAST_FIXED, MOST_BLOCKS
from pgversus.study.file.key_types import (
    LARGEST_INTEGER,
    Cache,
    Count,
    Name,
    Quantity,
    QuantityName,
    Table,
    Text,
    Value,
    VariableName,
    VariableValue,
    key,
)
from pgversus.study.workload import LARGEST_INT, LEAST_RATE, MOST_RATE, QueryMode

_LARGEST_WEIGHT = 999_999_999


class FactorsTable(Table):
    """Factors to vary. Each key is a factor and its list the levels; every combination of levels is measured.

    Every name except `server`, `workload`, `dataset`, `load`, `scale`, `cache` and `variables` is a PostgreSQL setting.
    Its levels are written as in `postgresql.conf`; numbers, `true` and `false` need no quotes. Quote the name of an
    extension's setting, because it contains a dot: `"auto_explain.log_timing" = ["on", "off"]`.

    The same level of the compared setting or variable twice is an A/A comparison.

    `[factors.variables]` is a table of variables, each of which is a factor. Its levels are passed to the scripts of
    every load (`-D`) and to the files in `prepare` of every operation. Refer to a variable as to any other factor:
    `compare = "dead"`, and `dead = 70` in `[[exclude]]`. A variable must not have the name of a setting in the file or
    of one of the factors above.
    """

    # Levels of settings: pydantic stores fields that are not declared below here.
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Annotated[list[Value], Field(min_length=1)]] = Field(init=False)

    server: Annotated[list[Text], Field(min_length=1)] | None = key(
        "servers: a version (`17`, `17.8`, `wheel:17.11`, `zonky:17.8`), a bin directory, or a connection URI; to "
        "build from source: a version with options (`17+blocksize=16`, `17+cassert`), a source tree, a commit "
        "(`./postgres@REF`), a tarball, or its URL. The same server twice is an A/A comparison",
        default="none: at least one is required",
        example=["16.12", "17.8"],
    )
    workload: Annotated[list[Text], Field(min_length=1)] | None = key(
        "names from `[workloads]`", default="all, in the order of the file", example=["cte_in", "range"]
    )
    dataset: Annotated[list[Text], Field(min_length=1)] | None = key(
        "names from `[datasets]`; every workload runs on each of them, and its own `dataset` is ignored",
        default="not a factor: each workload uses its own",
        example=["small", "large"],
    )
    load: Annotated[list[Text], Field(min_length=1)] | None = key(
        "names from `[loads]`", default="all, in the order of the file", example=["c1", "c24"]
    )
    scale: Annotated[list[Count], Field(min_length=1)] | None = key(
        "scale factors of pgbench's tables, which replace `scale` of the dataset",
        default="not a factor: `scale` of the dataset",
        example=[10, 100],
    )
    cache: Annotated[list[Cache], Field(min_length=1)] | None = key(
        "cache states; replaces the top-level key `cache`",
        default="not a factor: the top-level key `cache`",
        example=["warm", "cold"],
    )
    variables: dict[VariableName, Annotated[list[VariableValue], Field(min_length=1)]] | None = key(
        "variables, each with a list of levels, which override `variables` of a workload",
        default="none",
        example={"dead": [3, 20, 50, 70], "rows": ["spread", "contiguous"]},
    )


class ScriptEntry(Table):
    """One script of a mix: exactly one of `script`, `sql` and `builtin`."""

    script: Text | None = key("a pgbench script file", default="none", example="query.sql")
    sql: Text | None = key("the script itself", default="none", example="SELECT 1;")
    builtin: Text | None = key("a built-in script of pgbench (`-b`)", default="none", example="select-only")
    weight: Annotated[int, Field(ge=0, le=_LARGEST_WEIGHT)] | None = key(
        "relative frequency in the mix (`@` of pgbench)", default="1", example=2
    )


class StepEntry(Table):
    """One step of an operation: exactly one of `sql` and `command`."""

    name: Text | None = key("label of its time", default="its statement or program", example="dump")
    sql: Text | None = key("one SQL statement", default="none", example="CREATE INDEX ON pgbench_accounts (bid)")
    command: Text | None = key("a program, like `command` of a workload", default="none", example="pg_dump -f db.sql")


class WorkloadTable(Table):
    """The workload to time: exactly one of `script`, `sql`, `builtin`, `scripts`, `operation`, `command` and `steps`.

    The first four are run repeatedly by pgbench, under a load (`[load]`). The last three are operations, such as
    VACUUM, which run once and may change the state that they start from. Every block runs an operation once on each
    arm, on a fresh copy of the data, and compares the times. An operation does not have a load, windows or a warm-up.

    A study with one workload has `[workload]`; a study with several has `[workloads.NAME]` for each.
    Paths are relative to the study file.
    """

    script: Text | None = key("a pgbench script file (`-f`)", default="none", example="query.sql")
    sql: Text | None = key("the script itself", default="none", example="SELECT count(*) FROM pgbench_accounts;")
    builtin: Text | None = key("a built-in script of pgbench (`-b`)", default="none", example="tpcb-like")
    scripts: Annotated[list[ScriptEntry], Field(min_length=1)] | None = key(
        "a mix: a list of tables, each with a script and its `weight`",
        default="none",
        example=[{"script": "query.sql", "weight": 2}, {"builtin": "select-only"}],
    )
    operation: Text | None = key(
        "one SQL statement to run once and time", default="none", example="VACUUM (VERBOSE) pgbench_accounts"
    )
    command: Text | None = key(
        "a program to run once and time, quoted as in a shell but run without one; `PGHOST`, `PGPORT`, `PGUSER`, "
        "`PGDATABASE` and `PGDATA` refer to its arm; it runs in a directory of its own, with pgversus' `psql` and "
        "`pg_dump` first in `PATH`",
        default="none",
        example="pg_dump -Fc -f db.dump",
    )
    steps: Annotated[list[StepEntry], Field(min_length=1)] | None = key(
        "an operation with several steps, which run in order and are timed separately",
        default="none",
        example=[{"name": "index", "sql": "CREATE INDEX ON t (a)"}, {"command": "pg_dump -f db.sql"}],
    )
    prepare: list[Text] | None = key(
        "SQL files that psql runs once on the loaded data, to create the state that an operation needs",
        default="none",
        example=["dirty.sql"],
    )
    prepare_sql: Text | None = key(
        "SQL for the same purpose, run after the files in `prepare`",
        default="none",
        example="UPDATE pgbench_accounts SET abalance = 1 WHERE aid % 100 < :dead;",
    )
    verify: Text | None = key(
        "SQL that must return only true after an operation; otherwise the trial fails",
        default="none",
        example="SELECT n_dead_tup = 0 FROM pg_stat_user_tables WHERE relname = 'pgbench_accounts'",
    )
    rewrite: Text | None = key(
        "an equivalent script file that a newer server plans as the baseline plans `script` or `sql`; it is not "
        "compared, but used to measure the effect of a changed plan",
        default="none: pgversus searches for a setting that restores the old plan",
        example="query_rewritten.sql",
    )
    dataset: Name | None = key(
        "the name of its dataset, from `[datasets]`", default="the only dataset", example="small"
    )
    variables: dict[VariableName, VariableValue] | None = key(
        "variables for the scripts (`-D`), or for the files in `prepare` and `prepare_sql` of an operation",
        default="none",
        example={"rows": 1000},
    )
    settings: dict[str, Value] | None = key(
        "settings of every arm while this workload runs; a factor of the same name takes precedence",
        default="none",
        example={"enable_hashagg": "off"},
    )


class DatasetTable(Table):
    """The data loaded into each arm: `restore`, then pgbench's tables, then the files in `setup`, then `sql`.

    A study with one dataset has `[dataset]`; a study with several has `[datasets.NAME]` for each. Paths are relative to
    the study file.
    """

    restore: Text | None = key(
        "a dump of one database by pg_dump in any of its formats, or a base backup or data directory of one of the "
        "versions",
        default="none",
        example="app.dump",
    )
    database: Text | None = key(
        "the database of a base backup or data directory", default="the only one besides `postgres`", example="app"
    )
    scale: Count | None = key("scale factor of pgbench's tables (`-i -s`)", default="no such tables", example=10)
    setup: list[Text] | None = key("SQL files that psql runs once on each arm", default="none", example=["tables.sql"])
    sql: Text | None = key(
        "SQL that psql runs once on each arm, after the files in `setup`",
        default="none",
        example="CREATE INDEX ON pgbench_accounts (bid);",
    )
    full_statistics: StrictBool | None = key(
        "whether to run ANALYZE with a statistics target at which it reads every row of tables of up to three million "
        "rows, so that different samples do not lead to different plans",
        default="`false`",
        example=True,
    )


class LoadTable(Table):
    """The load that a workload runs under, in pgbench's terms.

    A study with one load has `[load]`; a study with several has `[loads.NAME]` for each.
    """

    clients: Count | None = key("clients (`-c`)", default="1", example=4)
    threads: Count | None = key("threads of pgbench (`-j`), at most the number of clients", default="1", example=2)
    protocol: Annotated[QueryMode, Field(strict=False)] | None = key(
        "query mode (`-M`)", default='`"simple"`', example="prepared"
    )
    rate: Annotated[float, Field(ge=LEAST_RATE, le=MOST_RATE, allow_inf_nan=False)] | None = key(
        "transactions per second over all clients, started on a schedule (`-R`); latency then decides the verdict",
        default="none: as fast as possible",
        example=100,
    )
    window: Quantity | None = key(
        "length of a window under this load: `50ms`, `2s`, or `20tx` (transactions per client)",
        default="the window of the design",
        example="10s",
    )


class ApplicationTable(Table):
    """The statements of an application, each of which is a comparison: the study is an upgrade check.

    It replaces `[workload]`. `server` is the only factor; its first level is the version in use. The data is that of
    `[dataset]`. `protocol` of `[load]` is that of the application; without it, the statements are prepared that a log
    shows as prepared.
    """

    statements: Annotated[list[Text], Field(min_length=1)] | None = key(
        "files with statements, as for `pgversus statements`: exports of pg_stat_statements, logs, `.sql` files",
        default="none: required",
        example=["statements.csv", "server.csv"],
    )
    statistics: list[Literal["none", "kept"]] | None = key(
        "also check each target with the statistics that it has right after pg_upgrade: `none` (17 and older), or "
        "`kept` (18 and newer: all but extended ones)",
        default="only with the statistics that ANALYZE collects",
        example=["none"],
    )
    coverage: Quantity | None = key(
        "share of the time of all executable statements that has to be covered; smaller statements are left out",
        default="`99%`",
        example="95%",
    )


class DesignTable(Table):
    """The measurement design; the keys correspond to options of `pgversus compare`."""

    metric: Literal["tps", "latency_mean", "latency_p50", "latency_p95", "time"] | None = key(
        "the metric that decides the verdict; with a `rate` not `tps`, which would be the same for every arm; "
        "operations only have `time`",
        default="`tps`; with a `rate` `latency_p95`; for an operation `time`",
        example="latency_p95",
    )
    margin: Quantity | None = key(
        "the smallest difference that matters, in percent",
        default="`2%`; `5%` for `latency_p95` and `time`",
        example="3%",
    )
    precision: Quantity | None = key(
        "measure until the 95 % interval extends at most this many percent to each side, even after the verdict is "
        "known; cannot be combined with `blocks`",
        default="none: stop as soon as the verdict is known",
        example="3%",
    )
    budget: Quantity | None = key(
        "wall-clock time for the blocks of all comparisons together: `90s`, `15m`, `2h`",
        default="`15m`",
        example="30m",
    )
    blocks: Annotated[int, Field(ge=LEAST_FIXED, le=LARGEST_INT)] | None = key(
        "run exactly this many blocks per comparison and analyze once at the end; cannot be combined with `budget`, "
        "`max_blocks` or `precision`",
        default="as many as needed",
        example=10,
    )
    max_blocks: Annotated[int, Field(ge=FIRST_LOOK, le=MOST_BLOCKS)] | None = key(
        "maximum number of blocks per comparison; a verdict that is not known by then is undecided",
        default=f"{MOST_BLOCKS}",
        example=40,
    )
    window: Quantity | None = key(
        "length of a window: `50ms`, `2s`, or `20tx` (transactions per client)",
        default="fitted to the load",
        example="50ms",
    )
    windows: Count | None = key("windows per arm and block", default="fitted to the load", example=8)
    warm_up: Quantity | None = key(
        "load that runs after each start and whose results are discarded, in whole seconds; 2 s or more is extended up "
        "to fourfold, until the load is steady (not with a rate)",
        default="`2s`; less with short windows",
        example="5s",
    )
    pin: Quantity | None = key(
        "whether pgbench and the servers use separate processors: `auto` (on hosts with at least four), `off`, or the "
        "list of those for pgbench, such as `0-1`; servers use the others",
        default="`auto`",
        example="off",
    )
    seed: Annotated[int, Field(ge=0, le=LARGEST_INTEGER)] | None = key(
        "seed for everything random; stored with the results", default="drawn at random", example=42
    )


class Sections(Table):
    """The keys that a profile may change."""

    question: Text | None = key(
        "the question to answer", default="none", example="Is 17 faster than 16 where its planner improved?"
    )
    compare: Text | None = key(
        "the factor whose levels are compared: `server`, `workload`, `dataset`, a setting or a variable. Each "
        "combination of the other factors is a separate comparison",
        default="the only factor with two or more levels, apart from `load`, `scale` and `cache`; if there are "
        "several, `server` if it is among them; otherwise required. Variables count only if no other such factor has "
        "two levels",
        example="server",
    )
    baseline: Value | None = key(
        "the level that all others are compared with", default="the first level", example="16.12"
    )
    cache: Cache | None = key(
        "`warm`: the data is in memory and the load has run for a while; `cold`: every window begins on a server that "
        "has just started, with its data evicted from the page cache",
        default='`"warm"`',
        example="cold",
    )
    if_missing: Literal["error", "skip"] | None = key(
        "how to treat a setting that some servers lack: `error`, or `skip` these combinations",
        default='`"error"`',
        example="skip",
    )
    published: Text | None = key(
        "a CSV file of published figures to show next to the results: `level` (of the compared factor), `tps`, or "
        "`time_s` for an operation, columns for the conditions, such as `workload`, `scale` and `clients`, and "
        "optionally `version` and `confounded`; docs/report.md describes them",
        default="none",
        example="published.csv",
    )
    metrics: list[QuantityName] | None = key(
        "metrics and counters to show for each comparison in addition to the metric of the verdict",
        default="peak memory of the server; for an operation that of its session, write-ahead log, and the work of "
        "VACUUM",
        example=["latency_p95", "temp_bytes"],
    )
    factors: FactorsTable | None = key("factors to vary", default="none", example={"server": ["16.12", "17.8"]})
    build_profile: Annotated[BuildProfile, Field(strict=False)] | None = key(
        "the extent of builds from source: `minimal` builds what a comparison runs, `full` everything, with the "
        "libraries that distributions use (`--build-profile`)",
        default='`"minimal"`',
        example="full",
    )
    build_system: Annotated[BuildSystem, Field(strict=False)] | None = key(
        "the build system for servers from source: `configure` or `meson` (`--build-system`)",
        default='`"configure"`, if the source has it',
        example="meson",
    )
    settings: dict[str, Value] | None = key(
        "PostgreSQL settings of every arm, as in `postgresql.conf`; a workload's setting or a factor of the same name "
        "takes precedence",
        default="none",
        example={"shared_buffers": "256MB"},
    )
    workload: WorkloadTable | None = key(
        "the only workload, named after its script", default="none", example={"script": "query.sql"}
    )
    workloads: dict[Name, WorkloadTable] | None = key(
        "several workloads, by name", default="none", example={"cte_in": {"script": "cte_in.sql"}}
    )
    application: ApplicationTable | None = key(
        "statements of an application, instead of workloads", default="none", example={"statements": ["statements.csv"]}
    )
    dataset: DatasetTable | None = key("the only dataset", default="no data is loaded", example={"scale": 10})
    datasets: dict[Name, DatasetTable] | None = key(
        "several datasets, by name", default="none", example={"small": {"scale": 10}}
    )
    load: LoadTable | None = key("the only load, not for operations", default="one client", example={"clients": 4})
    loads: dict[Name, LoadTable] | None = key("several loads, by name", default="none", example={"c4": {"clients": 4}})
    design: DesignTable | None = key(
        "the measurement design", default="as for `pgversus compare`", example={"margin": "3%"}
    )
    exclude: list[dict[str, Value]] | None = key(
        "combinations to exclude: a combination is excluded if it has all the levels of any one of these tables",
        default="none",
        example=[{"server": "18.0", "load": "c24"}],
    )
    only: list[dict[str, Value]] | None = key(
        "combinations to measure: only those with all levels of at least one of these tables",
        default="all combinations",
        example=[{"workload": "cte_in"}],
    )


class StudyTable(Sections):
    """A study file: a question and everything needed to answer it."""

    title: Text = Field(description="title of reports, shown on one line", examples=["Planner improvements"])
    profiles: dict[Name, Sections] | None = key(
        "changes to the rest of the file, by name. Tables are merged key by key; everything else is replaced",
        default="none",
        example={"quick": {"design": {"budget": "5m"}}},
    )
