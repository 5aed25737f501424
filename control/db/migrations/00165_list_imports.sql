-- +goose Up
-- Campaigns that are made in the background of lists that were uploaded. The transaction
-- that makes the campaign ends the import as well: it is made once, whatever server ends
-- when.
CREATE TABLE list_imports (
    id          text PRIMARY KEY,
    org_id      text NOT NULL REFERENCES organizations ON DELETE CASCADE,
    upload_id   text NOT NULL,
    columns     jsonb NOT NULL, -- what they are taken for
    spec        jsonb NOT NULL, -- of the campaign
    who         jsonb NOT NULL, -- asked for it
    form        text NOT NULL,  -- the query of the form, to come back to it
    state       text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done', 'failed')),
    tries       integer NOT NULL DEFAULT 0,
    lease_until timestamptz, -- while it runs
    stage       text NOT NULL DEFAULT '',
    rows_done   integer NOT NULL DEFAULT 0,
    rows_all    integer NOT NULL DEFAULT 0, -- 0 while they are not counted
    campaign_id text NOT NULL DEFAULT '',
    code        text NOT NULL DEFAULT '', -- of the refusal
    message     text NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL DEFAULT now(),
    done_at     timestamptz
);
CREATE INDEX list_imports_open ON list_imports (org_id, created_at) WHERE state IN ('queued', 'running');
CREATE INDEX list_imports_over ON list_imports (done_at) WHERE state IN ('done', 'failed');
