-- +goose Up
-- What a call cost, in billionths of the currency in costs: set when it ends, 0 if nothing was spent, and raised by
-- its analysis. Null before the end and for calls that ended before this migration.
ALTER TABLE calls ADD COLUMN cost_nano bigint, ADD COLUMN costs jsonb;
-- Null if the trunk has no rate for the number.
ALTER TABLE calls ALTER COLUMN cost_per_minute DROP DEFAULT, ALTER COLUMN cost_per_minute DROP NOT NULL;
