-- +goose Up
-- The providers that servers have, as they report each hour: an agent that names another
-- one is not published.
CREATE TABLE server_providers (
    seam text NOT NULL, -- asr, llm, tts
    name text NOT NULL,
    at   timestamptz NOT NULL,
    PRIMARY KEY (seam, name)
);
