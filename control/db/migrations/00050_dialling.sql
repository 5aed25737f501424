-- +goose Up
-- The group of a contact: those of one group may be called at the same times. And
-- from when on it is worth asking whether it may be called.
ALTER TABLE contacts ADD COLUMN hours_group text NOT NULL DEFAULT '', ADD COLUMN due_at timestamptz NOT NULL DEFAULT '-infinity';
UPDATE contacts SET hours_group = array_to_string(states, ',') || ';' || array_to_string(zones, ',') || ';' || timezone,
    due_at = coalesce(greatest(next_attempt_at, not_before), '-infinity');

-- Whom a campaign calls next: of each group and priority the first.
CREATE INDEX contacts_waiting ON contacts (campaign_id, priority DESC, hours_group, due_at, id) WHERE state = 'pending';

-- When a campaign's next call is due. It is a row of its own: the campaign itself
-- does not change with every call.
CREATE TABLE campaign_paces (
    campaign_id text PRIMARY KEY REFERENCES campaigns ON DELETE CASCADE,
    next_at     timestamptz NOT NULL DEFAULT '-infinity',
    last_at     timestamptz NOT NULL DEFAULT '-infinity'
);
ALTER TABLE campaign_paces SET (fillfactor = 50);
INSERT INTO campaign_paces (campaign_id) SELECT id FROM campaigns;
