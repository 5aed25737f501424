-- +goose Up
-- Who asked an organization not to be called again, in which call. Nothing of it
-- is changed; calls may be erased, this is not. The number is on the
-- organization's list besides, from which an operator may take it off by name.
CREATE TABLE opt_outs (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    org_id      text NOT NULL REFERENCES organizations ON DELETE CASCADE,
    number      text NOT NULL, -- digits
    call_id     text NOT NULL,
    campaign_id text, -- of the call
    contact_id  text,
    source      text NOT NULL, -- key, speech, agent, analysis
    said        text NOT NULL DEFAULT '', -- the words that asked
    asked_at    timestamptz NOT NULL,
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (call_id, source)
);
CREATE INDEX opt_outs_by_number ON opt_outs (org_id, number);
CREATE TRIGGER opt_outs_stay BEFORE UPDATE ON opt_outs FOR EACH ROW EXECUTE FUNCTION stays();
CREATE TRIGGER opt_outs_stay_too BEFORE DELETE ON opt_outs FOR EACH ROW EXECUTE FUNCTION stays_too();

-- How the party of a call has itself not called again, beside saying so.
ALTER TABLE calls ADD COLUMN opt_out jsonb NOT NULL DEFAULT '{}';
