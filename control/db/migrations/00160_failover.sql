-- +goose Up
-- The database's identity: another one after every promotion and every restore. Parts
-- that this role may not read, or that there are not, stay empty.
-- +goose StatementBegin
CREATE FUNCTION database_timeline() RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    cluster text := '';
    line text := '';
BEGIN
    BEGIN
        SELECT system_identifier::text INTO cluster FROM pg_control_system();
    EXCEPTION WHEN OTHERS THEN NULL;
    END;
    BEGIN
        line := substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
    EXCEPTION WHEN OTHERS THEN NULL;
    END;
    RETURN cluster || ':' || line;
END $$;
-- +goose StatementEnd

-- One row a timeline on which calls were made. Where there is none for the present one,
-- or it is not opened, nothing is dialed.
CREATE TABLE database_epochs (
    timeline    text PRIMARY KEY,
    epoch       text NOT NULL,                                  -- new with every return to an earlier state
    since       timestamptz NOT NULL DEFAULT clock_timestamp(),
    expected    text[] NOT NULL DEFAULT '{}',                   -- nodes whose journals are waited for
    opened_at   timestamptz,
    missing     text[] NOT NULL DEFAULT '{}',                   -- nodes whose journals did not come in time
    released_at timestamptz,                                    -- by an operator
    released_by text NOT NULL DEFAULT ''
);
INSERT INTO database_epochs (timeline, epoch, since, opened_at) VALUES (database_timeline(), 'first', '-infinity', now());

-- From when on calls must have been registered to be dialed: NULL for none of them,
-- -infinity for all. After a return to an earlier state those that waited before are held
-- until every node has told what it sent.
CREATE FUNCTION dialing_since() RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN missing = '{}' THEN '-infinity' ELSE since END
    FROM database_epochs WHERE timeline = database_timeline() AND opened_at IS NOT NULL
$$;

-- Nodes that keep a journal of what they send.
CREATE TABLE nodes (
    name    text PRIMARY KEY, -- host, data directory, number of the journal in it
    owner   text NOT NULL,    -- the process
    beat    bigint NOT NULL,  -- counts up; one that went down tells of an earlier state
    seen_at timestamptz NOT NULL
);

-- Calls that a node sent, and of which the database has forgotten all that could be
-- told: neither is their number called by a campaign, nor their Idempotency-Key used.
CREATE TABLE sent_facts (
    attempt_id  text PRIMARY KEY,
    call_id     text NOT NULL,
    org_id      text NOT NULL,
    number_hash bytea NOT NULL,
    key_hash    bytea NOT NULL,
    sent_at     timestamptz NOT NULL,
    written_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX sent_facts_by_number ON sent_facts (number_hash);
CREATE INDEX sent_facts_by_key ON sent_facts (key_hash);

-- The call of a request's key, so that both can be brought back.
ALTER TABLE idempotency_keys ADD COLUMN call_id text;
CREATE INDEX idempotency_keys_by_call ON idempotency_keys (call_id) WHERE call_id IS NOT NULL;

-- +goose Down
DROP INDEX idempotency_keys_by_call;
ALTER TABLE idempotency_keys DROP COLUMN call_id;
DROP TABLE sent_facts, nodes;
DROP FUNCTION dialing_since();
DROP TABLE database_epochs;
DROP FUNCTION database_timeline();
