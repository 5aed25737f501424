-- +goose Up
-- Why the call of an attempt was answered and broke before a conversation, by a fault
-- of this service: agent_error or internal_error. Empty: it did not.
ALTER TABLE contact_attempts ADD COLUMN fault text NOT NULL DEFAULT '';
