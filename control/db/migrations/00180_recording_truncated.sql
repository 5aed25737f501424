-- +goose Up
-- The recording holds only the beginning of the call: the disk was full, or failed.
ALTER TABLE calls ADD COLUMN recording_truncated boolean NOT NULL DEFAULT false;
