-- +goose Up
-- Since when a contact awaits the analysis of its call, by the database's clock.
ALTER TABLE contacts ADD COLUMN awaiting_since timestamptz;
UPDATE contacts SET awaiting_since = clock_timestamp() WHERE state = 'awaiting';
CREATE INDEX contacts_awaiting ON contacts (awaiting_since) WHERE state = 'awaiting';
