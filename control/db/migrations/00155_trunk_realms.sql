-- +goose Up
-- The realm that each proxy of a trunk asked for credentials with, as a call or a
-- registration proved it: only its challenges are answered, also after a restart.
CREATE TABLE trunk_realms (
    proxy text PRIMARY KEY,
    realm text NOT NULL,
    pinned_at timestamptz NOT NULL DEFAULT now()
);
