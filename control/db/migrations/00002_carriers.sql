-- +goose Up
ALTER TABLE trunks ADD COLUMN settings jsonb NOT NULL DEFAULT '{}';

-- How the audio of a call travelled; NULL where nobody measured.
ALTER TABLE calls ADD COLUMN quality jsonb;

-- The signalling of an attempt, for engineers. It may be missing.
CREATE TABLE call_signalling (
    call_id    text NOT NULL,
    attempt_id text NOT NULL,
    org_id     text NOT NULL,
    messages   jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (call_id, attempt_id),
    FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id) ON DELETE CASCADE
);
