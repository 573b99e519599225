-- Tables added since the first results. Older files get them when their run is resumed.

-- Windows of load, or operations, that do not count because something else had the host: their round was measured
-- again. A session of short windows is repeated whole.
CREATE TABLE IF NOT EXISTS discarded_window (
    context INTEGER NOT NULL,
    block INTEGER NOT NULL,
    arm INTEGER NOT NULL,
    round INTEGER NOT NULL,
    attempt INTEGER NOT NULL,                   -- from 1; the one that counts is the next after the last of these
    transactions INTEGER NOT NULL,
    seconds REAL NOT NULL,
    was_disturbed INTEGER NOT NULL,             -- 0 for a window beside a disturbed one
    PRIMARY KEY (context, block, arm, round, attempt),
    FOREIGN KEY (context, block) REFERENCES block
);

-- Plans of the measured statements, captured before the first block.

-- Planner settings and statistics behind the plans of one arm.
CREATE TABLE IF NOT EXISTS explained_arm (
    context INTEGER NOT NULL,
    arm INTEGER NOT NULL,
    settings TEXT NOT NULL,                     -- JSON object: planner settings as a session of the load has them
    statistics TEXT NOT NULL,                   -- JSON object: by table a hash over what ANALYZE has found
    is_searched INTEGER NOT NULL,               -- whether settings were looked for that bring the baseline's plans back
    index_keys TEXT,                            -- JSON object: the keys of each index, in the order of a forward scan
    sampled TEXT,                               -- JSON object: what auto_explain logged under load, if asked for
    PRIMARY KEY (context, arm),
    FOREIGN KEY (context, arm) REFERENCES arm
);

-- One statement of the workload on one arm.
CREATE TABLE IF NOT EXISTS plan (
    context INTEGER NOT NULL,
    arm INTEGER NOT NULL,
    statement INTEGER NOT NULL,                 -- from 1, over all scripts
    script TEXT NOT NULL,
    number INTEGER NOT NULL,                    -- in its script, from 1
    text TEXT NOT NULL,                         -- with its variables filled
    template TEXT,                              -- as it is prepared; missing where it is not
    parameters TEXT,                            -- JSON array: of the template
    planned TEXT,                               -- EXPLAIN (VERBOSE, SETTINGS, FORMAT JSON), as the server wrote it;
                                                -- missing for a statement that has no plan
    run TEXT,                                   -- the same with ANALYZE, BUFFERS, WAL
    more_runs TEXT,                             -- JSON array: further runs, to tell a difference in time from noise
    row_count INTEGER,                          -- of what it returned, where that was asked for
    rows_digest TEXT,                           -- in any order
    ordered_digest TEXT,                        -- in their order, where the statement is proven to order them totally
    uncertainties TEXT,                         -- JSON array: why the same data may give different rows
    undone_by TEXT,                             -- JSON: of a contender, settings that bring the baseline's plan back
    PRIMARY KEY (context, arm, statement),
    FOREIGN KEY (context, arm) REFERENCES explained_arm,
    CHECK ((planned IS NULL) = (run IS NULL))
);

-- Leases of a study that a fleet measures: a host may measure a block until its lease ends.

-- A later attempt begins when the host of the earlier one is lost, or a killed run is resumed.
CREATE TABLE IF NOT EXISTS lease (
    context INTEGER NOT NULL,
    block INTEGER NOT NULL,
    attempt INTEGER NOT NULL,                   -- from 1
    host TEXT NOT NULL,
    granted_at TEXT NOT NULL,
    PRIMARY KEY (context, block, attempt),
    FOREIGN KEY (context) REFERENCES context
);

-- How a lease ended; missing if the run was killed before. A block counts once, whatever number of leases it had.
CREATE TABLE IF NOT EXISTS lease_end (
    context INTEGER NOT NULL,
    block INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    ended_at TEXT NOT NULL,
    outcome TEXT NOT NULL,                      -- measured (it counts unless its context had ended meanwhile), unmeasured
                                                -- (the start ended before), lost
    PRIMARY KEY (context, block, attempt),
    FOREIGN KEY (context, block, attempt) REFERENCES lease
);

-- What a host measured after its lease had ended: stored, and never used.
CREATE TABLE IF NOT EXISTS unused_trial (
    context INTEGER NOT NULL,
    block INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    arm INTEGER NOT NULL,
    transactions INTEGER NOT NULL,
    seconds REAL NOT NULL,
    PRIMARY KEY (context, block, attempt, arm),
    FOREIGN KEY (context, block, attempt) REFERENCES lease
);
