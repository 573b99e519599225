-- The results of one study. Rows are added, never rewritten: every number in a report can be recomputed from here.
-- Base units everywhere: seconds, counts, bytes. Times of day are UTC, ISO 8601.
--
-- Versions of this schema:
-- 1  one comparison in a file
-- 2  many contexts in a file; percentiles and counters of each trial; repeated rounds of each block
-- 3  counters of a trial as doubles; latencies of a trial in a table of their own; times of an operation's steps

-- One row: which form this file has.
CREATE TABLE schema (
    version INTEGER NOT NULL,
    program TEXT NOT NULL                       -- pgversus and its version
);

-- What was asked, decided and found around the trials; each value one JSON document. Of a name that was recorded more
-- than once the last one holds. study: again when its title, question, metrics or published figures were changed.
-- host (copies: reflink or copy, how the data of each block are made), client, builds (by the server's name in full), budget_s, ended, not_prepared (why a context could not be
-- measured in that run, by its number),
-- asked (what was typed, without secrets, and the text of the study file), not_attributed (why what plans account for was not measured, by numbers of context and arm: 3-1): of each run. loaded: labels of the servers
-- of others that hold the data of the study.
CREATE TABLE fact (
    name TEXT NOT NULL,
    recorded_at TEXT NOT NULL,
    value TEXT NOT NULL
);

-- One comparison of the study: every factor but the compared one is fixed.
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

-- Contexts whose data were loaded and whose load was tried once. Failed: they would fail again by themselves.
CREATE TABLE preparation (
    context INTEGER PRIMARY KEY REFERENCES context,
    recorded_at TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('ready', 'failed')),
    found TEXT,                                 -- JSON: design with fitted windows, builds, differences between the arms
    failed_words TEXT,                          -- why it cannot be measured
    CHECK ((status = 'ready') = (found IS NOT NULL)),
    CHECK ((status = 'failed') = (failed_words IS NOT NULL))
);

-- Trials close in time, every arm that is still open in it, each freshly started.
CREATE TABLE block (
    context INTEGER NOT NULL REFERENCES context,
    block INTEGER NOT NULL,                     -- from 1 in each context, in order of time
    finished_at TEXT NOT NULL,
    wall_s REAL NOT NULL,                       -- from the first start to the last stop; its part where starts are shared
    repeated_rounds INTEGER NOT NULL,           -- measured again because something else had the host; the first ones are
                                                -- not kept
    PRIMARY KEY (context, block)
);

-- One arm in one block: finished trials have numbers, failed ones have words.
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
                                                -- the order of counter_name; no number, or no place, for what nobody told
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

-- How long the transactions of a finished trial took; nothing in it for an operation.
CREATE TABLE latency_histogram (
    context INTEGER NOT NULL,
    block INTEGER NOT NULL,
    arm INTEGER NOT NULL,
    first_bin INTEGER NOT NULL,                 -- bin b holds latencies from 1.01^b to 1.01^(b+1) microseconds
    counts TEXT NOT NULL,                       -- JSON array: transactions in that bin and the following ones
    PRIMARY KEY (context, block, arm),
    FOREIGN KEY (context, block, arm) REFERENCES trial
);

-- The measured intervals of a finished trial, in order of time: windows of load, or the operation. What pgbench, the
-- server or a program said in it is in raw_output.
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

-- Names of counters, with their units: wal_bytes, server_cpu_user_s. trial.counters has its values in this order.
CREATE TABLE counter_name (
    position INTEGER PRIMARY KEY,               -- from 0
    name TEXT NOT NULL UNIQUE
);

-- One row for each counter of each finished trial, for those who ask in SQL. ieee754_from_blob() is part of the sqlite3
-- shell; elsewhere it is a function to be added: eight bytes in, the double out.
CREATE VIEW counter AS
SELECT * FROM (
    SELECT trial.context, trial.block, trial.arm, counter_name.name,
           ieee754_from_blob(substr(trial.counters, 8 * counter_name.position + 1, 8)) AS value
    FROM trial
    JOIN counter_name ON 8 * counter_name.position < length(trial.counters)
)
WHERE value IS NOT NULL;
