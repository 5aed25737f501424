-- +goose Up
-- What was done to campaigns, by whom. Nothing of it changes.
CREATE TABLE campaign_log (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    org_id      text NOT NULL,
    campaign_id text NOT NULL,
    action      text NOT NULL, -- created, launched, paused, resumed, cancelled, opened, completed, calls_added, calls_refused, withdrawn
    status      text NOT NULL, -- of the campaign, after it
    via         text NOT NULL,
    api_key_id  text NOT NULL DEFAULT '',
    actor       text NOT NULL DEFAULT '',
    detail      text NOT NULL DEFAULT '', -- the import of calls, how many were withdrawn, why it was completed
    at          timestamptz NOT NULL,
    FOREIGN KEY (org_id, campaign_id) REFERENCES campaigns (org_id, id) ON DELETE CASCADE
);
CREATE INDEX campaign_log_by_campaign ON campaign_log (campaign_id, id);
CREATE TRIGGER campaign_log_stays BEFORE UPDATE ON campaign_log FOR EACH ROW EXECUTE FUNCTION stays();

-- Records go with their campaign alone.
-- +goose StatementBegin
CREATE FUNCTION stays_too() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF pg_trigger_depth() < 2 THEN
        RAISE EXCEPTION '% is not deleted', TG_TABLE_NAME;
    END IF;
    RETURN OLD;
END $$;
-- +goose StatementEnd
CREATE TRIGGER attestations_stay_too BEFORE DELETE ON attestations FOR EACH ROW EXECUTE FUNCTION stays_too();
CREATE TRIGGER dnc_audit_stays_too BEFORE DELETE ON dnc_audit FOR EACH ROW EXECUTE FUNCTION stays_too();
CREATE TRIGGER campaign_log_stays_too BEFORE DELETE ON campaign_log FOR EACH ROW EXECUTE FUNCTION stays_too();
CREATE INDEX dnc_audit_by_import ON dnc_audit (import_id, id);

-- The fingerprint of the screen that a client was shown last, of a draft.
ALTER TABLE campaigns ADD COLUMN seen_fingerprint text NOT NULL DEFAULT '';

-- The rows of a list that were on a do-not-call list at the launch, or when the
-- batch was handed over.
CREATE TABLE import_matches (
    import_id text NOT NULL REFERENCES imports ON DELETE CASCADE,
    n         integer NOT NULL,
    registry  text NOT NULL,
    PRIMARY KEY (import_id, n)
);

-- One row a call to a contact, written when the contact is taken to be called.
-- It says what came of the call once that is over. The call itself may be
-- forgotten before the campaign is.
CREATE TABLE contact_attempts (
    contact_id  text NOT NULL REFERENCES contacts ON DELETE CASCADE,
    n           integer NOT NULL, -- 1, 2, …
    org_id      text NOT NULL,
    campaign_id text NOT NULL,
    number      text NOT NULL, -- E.164
    call_id     text NOT NULL UNIQUE,
    outcome     text, -- NULL while it is on
    rule        integer NOT NULL DEFAULT -1, -- of the retry_config, that brought a redial
    began_at    timestamptz NOT NULL,
    ended_at    timestamptz, -- with the outcome
    PRIMARY KEY (contact_id, n),
    CHECK ((outcome IS NULL) = (ended_at IS NULL))
);
CREATE INDEX contact_attempts_by_campaign ON contact_attempts (campaign_id, began_at);
-- The database, not the code, forbids two calls to one contact, or to one number
-- of an organization, at a time.
CREATE UNIQUE INDEX contact_attempts_one ON contact_attempts (contact_id) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX contact_attempts_one_number ON contact_attempts (org_id, number) WHERE ended_at IS NULL;

ALTER TABLE contacts
    ADD CHECK (state IN ('pending', 'in_call', 'awaiting', 'done', 'exhausted', 'suppressed')),
    ADD CHECK ((state = 'suppressed') = (reason <> '')),
    ADD CHECK (reason <> 'frequency_capped' OR governing_cap <> ''),
    ADD CHECK (NOT dnc_at_launch OR reason = 'dnc_suppressed');
