-- +goose Up
-- What the providers of a call did, in the units that they charge for; null before the end of the call.
ALTER TABLE calls ADD COLUMN usage jsonb;
