-- +goose Up
-- What a browser joins its call with. The word itself is kept nowhere.
CREATE TABLE web_tickets (
    call_id    text PRIMARY KEY REFERENCES calls ON DELETE CASCADE,
    hash       bytea NOT NULL, -- SHA-256 of the token's id
    client     text NOT NULL DEFAULT '', -- browser, sdk
    expires_at timestamptz NOT NULL,
    used_at    timestamptz -- joined, or settled
);
CREATE INDEX web_tickets_open ON web_tickets (expires_at) WHERE used_at IS NULL;
