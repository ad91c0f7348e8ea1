-- The tables of a record, format 1. Times are nanoseconds on the clock of the run that the row belongs
-- to (see run.origin_wall_ns); wall clock times are nanoseconds since the Unix epoch. JSON is text.

-- Exactly one row: what this execution of a study is, and how far it came.
CREATE TABLE execution (
    id               INTEGER PRIMARY KEY CHECK (id = 1),
    study_name       TEXT    NOT NULL,
    title            TEXT    NOT NULL,
    question         TEXT    NOT NULL,
    evidence         TEXT    NOT NULL,  -- measured | emulated | simulated
    seed             TEXT    NOT NULL,  -- decimal, unsigned 64 bits
    identity         TEXT    NOT NULL,  -- of the workload
    started_wall_ns  INTEGER NOT NULL,
    plan             TEXT    NOT NULL,  -- JSON
    host             TEXT    NOT NULL,  -- JSON
    software         TEXT    NOT NULL,  -- JSON
    status           TEXT    NOT NULL,  -- running | finished | failed | cancelled
    finished_wall_ns INTEGER,
    sessions         INTEGER NOT NULL   -- processes that wrote it: 1 + resumptions
) STRICT;

CREATE TABLE design (
    design      INTEGER PRIMARY KEY,    -- position in the plan, from 0
    name        TEXT NOT NULL UNIQUE,
    title       TEXT NOT NULL,
    description TEXT NOT NULL,
    evidence    TEXT NOT NULL,
    detail      TEXT NOT NULL           -- JSON
) STRICT;

CREATE TABLE run (
    run            INTEGER PRIMARY KEY,
    design         INTEGER NOT NULL REFERENCES design,
    repeat         INTEGER NOT NULL,    -- from 1; equal repeats of two designs are a pair
    sequence       INTEGER NOT NULL,    -- position in the schedule, from 0
    begin_ns       INTEGER NOT NULL,
    end_ns         INTEGER,
    origin_wall_ns INTEGER NOT NULL,    -- wall clock time of 0 on this run's clock
    status         TEXT    NOT NULL,    -- running | finished | failed | interrupted
    reason         TEXT,
    superseded_by  INTEGER REFERENCES run
) STRICT;

CREATE TABLE phase (
    phase    INTEGER PRIMARY KEY,
    run      INTEGER REFERENCES run,    -- null: done once for all runs
    kind     TEXT    NOT NULL,
    label    TEXT    NOT NULL,
    users    INTEGER,
    begin_ns INTEGER NOT NULL,
    end_ns   INTEGER,
    status   TEXT    NOT NULL           -- running | finished | failed | interrupted | skipped
) STRICT;
CREATE INDEX phase_by_run ON phase (run, begin_ns);

CREATE TABLE event (
    event INTEGER PRIMARY KEY,
    run   INTEGER REFERENCES run,
    at_ns INTEGER NOT NULL,
    kind  TEXT    NOT NULL,
    text  TEXT    NOT NULL,
    data  TEXT    NOT NULL              -- JSON
) STRICT;
CREATE INDEX event_by_run ON event (run, at_ns);

CREATE TABLE source (
    run    INTEGER NOT NULL REFERENCES run,
    source INTEGER NOT NULL,
    name   TEXT    NOT NULL,
    layer  TEXT    NOT NULL,
    status TEXT    NOT NULL,            -- available | degraded | absent
    reason TEXT,
    PRIMARY KEY (run, source)
) STRICT, WITHOUT ROWID;

CREATE TABLE series (
    run      INTEGER NOT NULL,
    source   INTEGER NOT NULL,
    position INTEGER NOT NULL,          -- of the value in tick.row
    name     TEXT    NOT NULL,
    unit     TEXT    NOT NULL,
    kind     TEXT    NOT NULL,          -- counter | gauge
    PRIMARY KEY (run, source, position)
) STRICT, WITHOUT ROWID;

-- One row per source and tick: appended in order of time, so that writing stays cheap.
CREATE TABLE tick (
    run      INTEGER NOT NULL,
    begin_ns INTEGER NOT NULL,          -- the window in which the values were read
    source   INTEGER NOT NULL,
    end_ns   INTEGER NOT NULL,
    row      BLOB    NOT NULL,          -- f64, little endian, one per series; NaN = missing
    PRIMARY KEY (run, begin_ns, source)
) STRICT, WITHOUT ROWID;

CREATE TABLE wait_key (
    wait_key     INTEGER PRIMARY KEY,
    state        TEXT NOT NULL,
    class        TEXT NOT NULL,
    event        TEXT NOT NULL,
    backend_type TEXT NOT NULL,
    UNIQUE (state, class, event, backend_type)
) STRICT;

CREATE TABLE wait_window (
    run            INTEGER NOT NULL,
    begin_ns       INTEGER NOT NULL,
    end_ns         INTEGER NOT NULL,
    samples        INTEGER NOT NULL,    -- how often the sessions were looked at
    holder_samples INTEGER NOT NULL,    -- how often lock chains were followed
    PRIMARY KEY (run, begin_ns)
) STRICT, WITHOUT ROWID;

CREATE TABLE wait_count (
    run      INTEGER NOT NULL,
    begin_ns INTEGER NOT NULL,
    role     TEXT    NOT NULL,          -- client | holder | background | log-holder | page-holder
    wait_key INTEGER NOT NULL REFERENCES wait_key,
    sessions INTEGER NOT NULL,          -- session samples, summed over the window
    PRIMARY KEY (run, begin_ns, role, wait_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE transactions (
    run           INTEGER NOT NULL,
    begin_ns      INTEGER NOT NULL,
    type          TEXT    NOT NULL,
    end_ns        INTEGER NOT NULL,
    committed     INTEGER NOT NULL,
    rolled_back   INTEGER NOT NULL,     -- intended by the workload
    failed        INTEGER NOT NULL,     -- given up, known to be undone
    unknown       INTEGER NOT NULL,     -- given up, outcome unknown
    errors        TEXT    NOT NULL,     -- JSON object: class -> count, of all attempts
    retries       INTEGER NOT NULL,
    response      BLOB    NOT NULL,     -- histogram, ns since the intended start
    service       BLOB    NOT NULL,     -- histogram, ns since the actual start
    PRIMARY KEY (run, begin_ns, type)
) STRICT, WITHOUT ROWID;

CREATE TABLE histogram (
    run      INTEGER NOT NULL,
    begin_ns INTEGER NOT NULL,
    scope    TEXT    NOT NULL,
    name     TEXT    NOT NULL,
    end_ns   INTEGER NOT NULL,
    data     BLOB    NOT NULL,          -- histogram
    PRIMARY KEY (run, begin_ns, scope, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE consistency_check (
    run      INTEGER NOT NULL REFERENCES run,
    moment   TEXT    NOT NULL,          -- before | after
    id       TEXT    NOT NULL,
    position INTEGER NOT NULL,          -- order in which the checks were made
    title    TEXT    NOT NULL,
    outcome  TEXT    NOT NULL,          -- ok | violated | failed
    rows     INTEGER,                   -- of a violation
    detail   TEXT,                      -- example of a violation, or the error
    PRIMARY KEY (run, moment, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE finding (
    finding  INTEGER PRIMARY KEY,
    run      INTEGER REFERENCES run,
    severity TEXT NOT NULL,             -- information | warning | invalid
    code     TEXT NOT NULL,
    text     TEXT NOT NULL,
    data     TEXT NOT NULL              -- JSON
) STRICT;

CREATE TABLE document (
    document INTEGER PRIMARY KEY,
    run      INTEGER REFERENCES run,    -- null: of the whole execution
    name     TEXT NOT NULL,
    content  TEXT NOT NULL              -- JSON
) STRICT;
CREATE UNIQUE INDEX document_by_name ON document (coalesce(run, 0), name);
