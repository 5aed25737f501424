-- +goose Up
-- Until when a node sends no call through a trunk because its carrier asked for a
-- pause (503 with Retry-After).
ALTER TABLE trunk_sights ADD COLUMN paused_until timestamptz NOT NULL DEFAULT '-infinity';
