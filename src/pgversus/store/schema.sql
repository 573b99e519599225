-- Results of one study. Rows are added, never changed: every number in a report can be recomputed from this file.
-- Values are in base units: seconds, counts, bytes. Timestamps are UTC, ISO 8601.
--
-- Versions of this schema:
-- 1  one comparison in a file
-- 2  many contexts in a file; percentiles and counters of each trial; repeated rounds of each block
-- 3  counters of a trial as doubles; latencies of a trial in a separate table; times of an operation's steps

-- Schema version of this file, in one row.
CREATE TABLE schema (
    version INTEGER NOT NULL,
    program TEXT NOT NULL                       -- pgversus and its version
);

-- Facts other than trials, each a JSON document. If a name was recorded more than once, the last value applies.
-- study: metadata of the study, recorded again when its title, question, metrics or published figures change.
-- loaded: labels of the external servers that hold the data of the study.
-- Facts of each run: host (with copies: reflink or copy, how the data of each block are copied); client; builds (by the
-- full name of the server); budget_s; ended; not_prepared (why a context could not be measured in that run, by its
-- number); asked (the command without secrets and the text of the study file); not_attributed (why the effect of plans
-- was not measured, by number of context and arm: 3-1).
CREATE TABLE fact (
    name TEXT NOT NULL,
    recorded_at TEXT NOT NULL,
    value TEXT NOT NULL
);

-- One comparison of the study, with every factor fixed except the compared one.
CREATE TABLE context (
    context INTEGER PRIMARY KEY,                -- from 1, in the order of the study
    label TEXT NOT NULL,                        -- factor=level of what is fixed; empty when nothing else varies
    comparison TEXT NOT NULL                    -- JSON: levels, arms, factors, design, cache
);

-- One side of a comparison; 0 is the baseline.
CREATE TABLE arm (
    context INTEGER NOT NULL REFERENCES context,
    arm INTEGER NOT NULL,
    label TEXT NOT NULL,
    settings TEXT NOT NULL,                     -- JSON object: name, value
    PRIMARY KEY (context, arm)
);

-- Contexts whose data were loaded and whose load was tried once. Failed ones would fail again.
CREATE TABLE preparation (
    context INTEGER PRIMARY KEY REFERENCES context,
    recorded_at TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('ready', 'failed')),
    found TEXT,                                 -- JSON: design with fitted windows, builds, differences between the arms
    failed_words TEXT,                          -- why it cannot be measured
    CHECK ((status = 'ready') = (found IS NOT NULL)),
    CHECK ((status = 'failed') = (failed_words IS NOT NULL))
);

-- Trials close in time, one for each arm that is still undecided, each on a freshly started server.
CREATE TABLE block (
    context INTEGER NOT NULL REFERENCES context,
    block INTEGER NOT NULL,                     -- from 1 in each context, in order of time
    finished_at TEXT NOT NULL,
    wall_s REAL NOT NULL,                       -- from the first start to the last stop; its part where starts are shared
                                                -- or, in a fleet, where other hosts measure meanwhile
    repeated_rounds INTEGER NOT NULL,           -- measured again because something else had the host (discarded_window)
    host TEXT,                                  -- of a fleet, on which all of it was measured; missing without a fleet
    PRIMARY KEY (context, block)
);

-- One arm in one block: a finished trial has measurements, a failed one an error message.
CREATE TABLE trial (
    context INTEGER NOT NULL,
    block INTEGER NOT NULL,
    arm INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('finished', 'failed')),
    transactions INTEGER,
    seconds REAL,                               -- sum of its windows, without connecting
    failed INTEGER,                             -- transactions that ended in a serialization failure or a deadlock
    unclocked INTEGER,                          -- transactions whose end pgbench did not look at its clock for
    latency_sum_s REAL,
    latency_min_s REAL,                         -- exact to 1 %, as the percentiles
    latency_max_s REAL,
    latency_p50_s REAL,                         -- of all its transactions, exact to 1 %; missing where none was logged
    latency_p95_s REAL,
    latency_p99_s REAL,
    trend REAL,                                 -- ln of tps in the second half of its windows over the first half
    counters BLOB,                              -- doubles, big-endian: what servers and host counted in its windows, in
                                                -- the order of counter_name; no number, or no place, for what was not reported
    ratio_error REAL,                           -- standard error of ln(tps / that of the baseline) from the windows of
                                                -- this block alone; missing for the baseline and in older results
    windows INTEGER,                            -- how many; missing in older results
    steps TEXT,                                 -- JSON object: seconds of each step of an operation; missing for a load
    failed_phase TEXT,                          -- start, warm-up, measure
    failed_words TEXT,                          -- what the failing program said
    PRIMARY KEY (context, block, arm),
    FOREIGN KEY (context, block) REFERENCES block,
    FOREIGN KEY (context, arm) REFERENCES arm,
    CHECK ((status = 'finished') = (transactions IS NOT NULL)),
    CHECK ((status = 'failed') = (failed_words IS NOT NULL))
);

-- Latencies of a finished trial; empty for an operation.
CREATE TABLE latency_histogram (
    context INTEGER NOT NULL,
    block INTEGER NOT NULL,
    arm INTEGER NOT NULL,
    first_bin INTEGER NOT NULL,                 -- bin b holds latencies from 1.01^b to 1.01^(b+1) microseconds
    counts TEXT NOT NULL,                       -- JSON array: transactions in that bin and the following ones
    PRIMARY KEY (context, block, arm),
    FOREIGN KEY (context, block, arm) REFERENCES trial
);

-- Measured intervals of a finished trial in order of time: windows of load, or the operation. raw_output is the output
-- of pgbench, the server or a program.
CREATE TABLE window (
    context INTEGER NOT NULL,
    block INTEGER NOT NULL,
    arm INTEGER NOT NULL,
    round INTEGER NOT NULL,                     -- from 1; the arms of one round draw the same keys
    transactions INTEGER NOT NULL,
    seconds REAL NOT NULL,
    raw_output TEXT NOT NULL,
    PRIMARY KEY (context, block, arm, round),
    FOREIGN KEY (context, block, arm) REFERENCES trial
);

-- Names of counters, including units: wal_bytes, server_cpu_user_s. trial.counters holds the values in this order.
CREATE TABLE counter_name (
    position INTEGER PRIMARY KEY,               -- from 0
    name TEXT NOT NULL UNIQUE
);

-- One row for each counter of each finished trial, for queries in SQL, which has no function that reads a double from a
-- blob: its 64 bits are put together from hexadecimal digits, then taken apart into a sign, 11 bits of exponent and 52 bits
-- of fraction. A double is (-1)^sign * (2^52 + fraction) * 2^(exponent - 1075). Every step is exact for
-- numbers from 1e-100 to 1e30, the range of counters.
CREATE VIEW counter AS
WITH digit (place) AS (
    VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15), (16)
),
double AS (
    SELECT context, block, arm, name,
           (SELECT sum((instr('0123456789ABCDEF', substr(hexadecimal, place, 1)) - 1) << (4 * (16 - place)))
            FROM digit) AS bits
    FROM (
        SELECT trial.context, trial.block, trial.arm, counter_name.name,
               hex(substr(trial.counters, 8 * counter_name.position + 1, 8)) AS hexadecimal
        FROM trial
        JOIN counter_name ON 8 * counter_name.position < length(trial.counters)
    )
),
number AS (
    SELECT context, block, arm, name,
           CASE WHEN bits < 0 THEN -1.0 ELSE 1.0 END AS sign,
           (1 << 52) + (bits & ((1 << 52) - 1)) AS mantissa,
           ((bits >> 52) & 2047) - 1075 AS power
    FROM double
    WHERE ((bits >> 52) & 2047) < 2047          -- otherwise no number: not reported
)
SELECT context, block, arm, name,
       CASE WHEN power = -1075 THEN 0.0
            WHEN power >= 0 THEN sign * mantissa * (1 << power)
            ELSE sign * mantissa
                / (1 << min(60, -power)) / (1 << max(0, min(60, -power - 60)))
                / (1 << max(0, min(60, -power - 120))) / (1 << max(0, min(60, -power - 180)))
                / (1 << max(0, min(60, -power - 240))) / (1 << max(0, min(60, -power - 300)))
                / (1 << max(0, min(60, -power - 360)))
       END AS value
FROM number;
