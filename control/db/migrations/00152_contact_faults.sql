-- +goose Up
-- Why the last call of a contact broke that has no attempt left, by a fault of this
-- service: agent_error or internal_error. Empty: it did not.
ALTER TABLE contacts ADD COLUMN fault text NOT NULL DEFAULT '';
