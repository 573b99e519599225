-- The results of one comparison. Rows are added, never rewritten: every number in a report can be recomputed from here.
-- Base units everywhere: seconds, counts, bytes. Times of day are UTC, ISO 8601.
--
-- Versions of this schema:
-- 1  first

-- One row: which form this file has.
CREATE TABLE schema (
    version INTEGER NOT NULL,
    program TEXT NOT NULL                       -- pgversus and its version
);

-- What was asked, decided and found around the trials; each value one JSON document.
-- comparison, design, host, arms, differences, caveats, answer
CREATE TABLE fact (
    name TEXT NOT NULL,
    recorded_at TEXT NOT NULL,
    value TEXT NOT NULL
);

-- One side of the comparison; 0 is the baseline.
CREATE TABLE arm (
    arm INTEGER PRIMARY KEY,
    label TEXT NOT NULL,
    version TEXT NOT NULL,                      -- server_version
    origin TEXT NOT NULL,                       -- wheel, zonky, bin directory, running server
    settings TEXT NOT NULL                      -- JSON object: name, value
);

-- Trials close in time, every arm that is still open in it, each freshly started.
CREATE TABLE block (
    block INTEGER PRIMARY KEY,                  -- from 1, in order of time
    finished_at TEXT NOT NULL,
    wall_s REAL NOT NULL                        -- from the first start to the last stop
);

-- One arm in one block: finished trials have numbers, failed ones have words.
CREATE TABLE trial (
    block INTEGER NOT NULL REFERENCES block,
    arm INTEGER NOT NULL REFERENCES arm,
    status TEXT NOT NULL CHECK (status IN ('finished', 'failed')),
    transactions INTEGER,
    seconds REAL,                               -- sum of its windows, without connecting
    failed INTEGER,                             -- transactions that ended in a serialization failure or a deadlock
    latency_sum_s REAL,
    latency_max_s REAL,
    histogram_first_bin INTEGER,                -- bin b holds latencies from 1.01^b to 1.01^(b+1) microseconds
    histogram_counts TEXT,                      -- JSON array: transactions in that bin and the following ones
    failed_phase TEXT,                          -- start, warm-up, measure
    failed_words TEXT,                          -- what the failing program said
    PRIMARY KEY (block, arm),
    CHECK ((status = 'finished') = (transactions IS NOT NULL)),
    CHECK ((status = 'failed') = (failed_words IS NOT NULL))
);

-- The measured intervals of a finished trial, in order of time; pgbench's own words on each are in raw_output.
CREATE TABLE window (
    block INTEGER NOT NULL,
    arm INTEGER NOT NULL,
    round INTEGER NOT NULL,                     -- from 1; the arms of one round draw the same keys
    transactions INTEGER NOT NULL,
    seconds REAL NOT NULL,
    raw_output TEXT NOT NULL,
    PRIMARY KEY (block, arm, round),
    FOREIGN KEY (block, arm) REFERENCES trial
);
