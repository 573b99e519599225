"""Hints for options that pgbench, psql or another command of pgversus has, shown instead of guesses."""

_OF_PGBENCH = (
    (("-T", "--time", "-t", "--transactions"), "pgversus decides how long to run; see --budget, --window and --warmup"),
    (("-P", "--progress", "--progress-timestamp"), "pgversus always shows its progress"),
    (
        ("-l", "--log", "--log-prefix", "--sampling-rate", "--aggregate-interval"),
        "--keep-logs stores pgbench's per-transaction log files with the results",
    ),
    (
        ("-r", "--report-latencies", "--report-per-command"),
        "run one comparison for each statement, with its own -f FILE",
    ),
    (("-C", "--connect"), "connections stay open; compare the cost of connecting with --command 'psql -c ...'"),
    (("--vacuum-all",), "pgversus runs VACUUM (ANALYZE) on the data that it loads"),
    (
        (
            *("-F", "--fillfactor", "-I", "--init-steps", "--partitions", "--partition-method"),
            *("--tablespace", "--index-tablespace", "--unlogged-tables", "--foreign-keys"),
        ),
        "create other tables with --setup FILE",
    ),
    (("--random-seed",), "--seed N"),
    (("-L", "--latency-limit"), "every transaction counts; compare slow ones with --metric latency_p95"),
    (
        ("--max-tries", "--failures-detailed"),
        "failed transactions are not retried; pgversus reports their number for each arm",
    ),
    (
        ("--debug", "--verbose-errors", "--show-script", "--exit-on-abort"),
        "to find a mistake in a script, run pgbench itself; pgversus shows the errors of pgbench",
    ),
)
_OF_PSQL = (
    (("-W", "--password", "-w", "--no-password"), "set PGPASSWORD, or use a password file (PGPASSFILE)"),
    (("-V",), "pgversus --version"),
    (
        ("-h", "--host", "-p", "--port", "-U", "--username", "-d", "--dbname"),
        "specify the server as a connection URI, postgresql://HOST:PORT/DATABASE (PGUSER names the user)",
    ),
)
_HINTS = {flag: hint for flags, hint in (*_OF_PGBENCH, *_OF_PSQL) for flag in flags}
_OF_A_STUDY = "set it in the study file: see docs/study-file.md"
_NOT_MEASURED = "plans are captured with one client, and nothing is measured; pgversus compare accepts this option"
_BY_COMMAND = {"pgversus run": _OF_A_STUDY, "pgversus plans": _NOT_MEASURED}


def hint(option: str, path: str, options_of_compare: frozenset[str]) -> str:
    """Return a hint for an option that a command does not have; empty without one. path: `pgversus plans`."""
    if option in options_of_compare:
        return _BY_COMMAND.get(path, "")
    return _HINTS.get(option, "")
