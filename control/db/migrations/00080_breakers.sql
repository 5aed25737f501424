-- +goose Up
-- Routes that calls of campaigns were, or are, kept off, because calls through them
-- fail. No row: there was never a reason to.
CREATE TABLE route_breakers (
    subgroup_id text PRIMARY KEY REFERENCES subgroups ON DELETE CASCADE,
    open        boolean NOT NULL DEFAULT false,
    why         text NOT NULL DEFAULT '', -- failures, unreachable
    since       timestamptz,              -- of the last opening or closing
    wait        interval NOT NULL DEFAULT '0',
    probe_at    timestamptz,              -- from when on one call may try it
    probe_call  text NOT NULL DEFAULT ''  -- that tries it
);

-- How each node sees trunks that campaigns call through. What is not repeated is no
-- longer true.
CREATE TABLE trunk_sights (
    trunk_id text NOT NULL REFERENCES trunks ON DELETE CASCADE,
    node     text NOT NULL,
    down     boolean NOT NULL, -- no proxy of it takes calls
    at       timestamptz NOT NULL,
    PRIMARY KEY (trunk_id, node)
);

-- What one node does for all, for as long as it repeats that it does.
CREATE TABLE duties (
    name  text PRIMARY KEY,
    owner text NOT NULL,
    until timestamptz NOT NULL
);

-- A call that tries a route: where the route fails, it is no attempt of its contact.
ALTER TABLE contact_attempts ADD COLUMN probe boolean NOT NULL DEFAULT false;
