-- +goose Up
-- The last calls that were started through a subgroup and a grant, numbered from 1: at
-- most calls_per_minute of them in any 60 s. Older ones are deleted as new ones come.
ALTER TABLE subgroups ADD COLUMN started bigint NOT NULL DEFAULT 0;
ALTER TABLE grants ADD COLUMN started bigint NOT NULL DEFAULT 0;
CREATE TABLE subgroup_starts (
    subgroup_id text NOT NULL REFERENCES subgroups ON DELETE CASCADE,
    n           bigint NOT NULL,
    at          timestamptz NOT NULL,
    PRIMARY KEY (subgroup_id, n)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
CREATE TABLE grant_starts (
    grant_id text NOT NULL REFERENCES grants ON DELETE CASCADE,
    n        bigint NOT NULL,
    at       timestamptz NOT NULL,
    PRIMARY KEY (grant_id, n)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
