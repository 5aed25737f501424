-- +goose Up
-- The requests of each API key that had a limit, over the last minute. A crash
-- of Postgres forgets them; nothing of it is written to the log, so that a
-- request waits for no disk.
CREATE UNLOGGED TABLE rate_windows (
    key_id text PRIMARY KEY,
    used   integer NOT NULL DEFAULT 0 -- rows of rate_requests
);
CREATE UNLOGGED TABLE rate_requests (
    key_id text NOT NULL,
    at     timestamptz NOT NULL
);
CREATE INDEX rate_requests_by_key ON rate_requests (key_id, at);

-- +goose StatementBegin
-- admit counts a request of a key where fewer than most were admitted in the
-- minute before it. The row of the key puts the requests of all processes in
-- line; the clock is read behind it, so that no two of them see the same past.
-- What is refused is not counted.
CREATE FUNCTION admit(key text, most integer, OUT admitted boolean, OUT left_over integer, OUT resets_at timestamptz)
LANGUAGE plpgsql AS $$
DECLARE
    had  integer;
    gone integer;
    at_  timestamptz;
BEGIN
    SELECT used INTO had FROM rate_windows WHERE key_id = key FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO rate_windows (key_id) VALUES (key) ON CONFLICT DO NOTHING;
        SELECT used INTO had FROM rate_windows WHERE key_id = key FOR UPDATE;
    END IF;
    at_ := clock_timestamp();
    DELETE FROM rate_requests WHERE key_id = key AND at <= at_ - interval '60 seconds';
    GET DIAGNOSTICS gone = ROW_COUNT;
    admitted := had - gone < most;
    IF admitted THEN
        INSERT INTO rate_requests (key_id, at) VALUES (key, at_);
    END IF;
    IF admitted OR gone > 0 THEN
        UPDATE rate_windows SET used = had - gone + admitted::integer WHERE key_id = key;
    END IF;
    left_over := greatest(most - (had - gone + admitted::integer), 0);
    SELECT at + interval '60 seconds' INTO resets_at FROM rate_requests WHERE key_id = key ORDER BY at LIMIT 1;
END $$;
-- +goose StatementEnd

-- What belongs to a call belongs to the call's organization, says the database.
ALTER TABLE attempts
    DROP CONSTRAINT attempts_call_id_fkey,
    ADD CONSTRAINT attempts_call FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id) ON DELETE CASCADE;
ALTER TABLE events
    DROP CONSTRAINT events_call_id_fkey,
    ADD CONSTRAINT events_call FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id) ON DELETE CASCADE;

-- The values of headers of an agent's tools, sealed. They stood in the
-- definitions before.
ALTER TABLE agents ADD COLUMN secrets text NOT NULL DEFAULT '';
ALTER TABLE agent_versions ADD COLUMN secrets text NOT NULL DEFAULT '';
