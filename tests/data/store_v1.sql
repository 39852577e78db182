-- A store of schema version 1, as that version wrote it. Kept: never edit it.
CREATE TABLE comparisons (
    id INTEGER PRIMARY KEY AUTOINCREMENT, digest VARCHAR(40) NOT NULL UNIQUE, label TEXT NOT NULL);
CREATE TABLE tallies (
    comparison BIGINT NOT NULL REFERENCES comparisons (id), run SMALLINT NOT NULL, first BIGINT NOT NULL,
    stop BIGINT NOT NULL, greater BIGINT NOT NULL, less BIGINT NOT NULL, two_sided BIGINT NOT NULL,
    PRIMARY KEY (comparison, run, first), CHECK (stop > first)) WITHOUT ROWID;
CREATE TABLE leases (
    name VARCHAR(255) PRIMARY KEY, token VARCHAR(32) NOT NULL, holder TEXT NOT NULL, since DOUBLE PRECISION NOT NULL,
    beat DOUBLE PRECISION NOT NULL, commits BIGINT NOT NULL);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT, plan VARCHAR(255) NOT NULL, path TEXT NOT NULL, started DOUBLE PRECISION NOT NULL,
    updated DOUBLE PRECISION NOT NULL, ended DOUBLE PRECISION, state VARCHAR(16) NOT NULL, host TEXT NOT NULL,
    pid BIGINT NOT NULL, details TEXT NOT NULL, message TEXT NOT NULL);
CREATE INDEX runs_of_plan ON runs (plan, id);
CREATE TABLE progress (
    run BIGINT NOT NULL REFERENCES runs (id), position INTEGER NOT NULL, test_set TEXT NOT NULL,
    comparisons BIGINT NOT NULL, reached BIGINT NOT NULL, finished BIGINT NOT NULL, kept BIGINT NOT NULL,
    counted BIGINT NOT NULL, wanted BIGINT NOT NULL, PRIMARY KEY (run, position));
CREATE TABLE results (
    id INTEGER PRIMARY KEY AUTOINCREMENT, plan VARCHAR(255) NOT NULL, since BIGINT NOT NULL REFERENCES runs (id),
    until BIGINT REFERENCES runs (id), position BIGINT NOT NULL, digest VARCHAR(40), complete SMALLINT NOT NULL,
    test_set TEXT NOT NULL, subset TEXT, unit TEXT NOT NULL, a TEXT NOT NULL, b TEXT NOT NULL, metric TEXT NOT NULL,
    alternative VARCHAR(16) NOT NULL, higher_is_better SMALLINT NOT NULL, score_a DOUBLE PRECISION,
    score_b DOUBLE PRECISION, difference DOUBLE PRECISION, n_items BIGINT NOT NULL, n_units BIGINT NOT NULL,
    n_discordant BIGINT NOT NULL, method VARCHAR(32) NOT NULL, n_trials BIGINT NOT NULL, n_extreme BIGINT NOT NULL,
    p_value DOUBLE PRECISION, p_adjusted DOUBLE PRECISION, detail TEXT NOT NULL);
CREATE INDEX results_of_plan ON results (plan, until, position);
CREATE TABLE schema_version (version INTEGER NOT NULL);
INSERT INTO schema_version VALUES (1);
INSERT INTO comparisons VALUES (1, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'pair'), (2, 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', 'pair');
INSERT INTO tallies VALUES (1, 0, 0, 4096, 5, 4094, 7), (1, 0, 4096, 16384, 10, 12280, 14), (2, 0, 0, 4096, 4096, 4096, 4096);
INSERT INTO runs (plan, path, started, updated, ended, state, host, pid, details, message) VALUES
    ('night', '/plans/night.toml', 1790000000.0, 1790000060.0, 1790000060.0, 'finished', 'old', 7, '{}', '');
INSERT INTO progress VALUES (1, 0, 'dev', 2, 2, 2, 0, 20480, 20480);
