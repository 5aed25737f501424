-- +goose Up
-- Thin notices have no transcript. An endpoint may want to hear of some agents
-- alone, by their names; of none is of all.
ALTER TABLE webhook_endpoints ADD COLUMN thin boolean NOT NULL DEFAULT false;
ALTER TABLE webhook_endpoints ADD COLUMN agents text[] NOT NULL DEFAULT '{}';
