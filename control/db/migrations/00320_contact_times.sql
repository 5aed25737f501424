-- +goose Up
-- Pending contacts that have times of their own, counted by ten minutes of the next attempt. Triggers append what a change
-- of contacts adds and takes away, in its transaction, as for contact_tallies. The campaign page reads these rows instead
-- of all contacts that wait for a retry.
CREATE TABLE contact_times (
    campaign_id text NOT NULL,
    hours_group text NOT NULL,
    cap         text NOT NULL, -- the contact's governing_cap
    slot        timestamptz NOT NULL, -- beginning of the ten minutes that contain next_attempt_at; '-infinity' without one
    not_before  timestamptz NOT NULL, -- '-infinity' for none
    not_after   timestamptz NOT NULL, -- 'infinity' for none
    n           integer NOT NULL,
    folded      boolean NOT NULL DEFAULT false
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.2);
CREATE INDEX contact_times_by_campaign ON contact_times (campaign_id, slot, hours_group);
CREATE INDEX contact_times_loose ON contact_times (campaign_id) WHERE NOT folded;

-- +goose StatementBegin
CREATE FUNCTION contact_times_came() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO contact_times (campaign_id, hours_group, cap, slot, not_before, not_after, n)
    SELECT campaign_id, hours_group, governing_cap, coalesce(date_bin('10 minutes', next_attempt_at, 'epoch'), '-infinity'),
        coalesce(not_before, '-infinity'), coalesce(not_after, 'infinity'), count(*)
    FROM came WHERE state = 'pending' AND coalesce(next_attempt_at, not_before, not_after) IS NOT NULL GROUP BY 1, 2, 3, 4, 5, 6;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION contact_times_went() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO contact_times (campaign_id, hours_group, cap, slot, not_before, not_after, n)
    SELECT campaign_id, hours_group, governing_cap, coalesce(date_bin('10 minutes', next_attempt_at, 'epoch'), '-infinity'),
        coalesce(not_before, '-infinity'), coalesce(not_after, 'infinity'), -count(*)
    FROM went WHERE state = 'pending' AND coalesce(next_attempt_at, not_before, not_after) IS NOT NULL
        AND EXISTS (SELECT FROM campaigns c WHERE c.id = went.campaign_id) GROUP BY 1, 2, 3, 4, 5, 6;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION contact_times_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO contact_times (campaign_id, hours_group, cap, slot, not_before, not_after, n)
    SELECT campaign_id, hours_group, governing_cap, coalesce(date_bin('10 minutes', next_attempt_at, 'epoch'), '-infinity'),
        coalesce(not_before, '-infinity'), coalesce(not_after, 'infinity'), sum(k.n)
    FROM (
        SELECT campaign_id, state, hours_group, governing_cap, next_attempt_at, not_before, not_after, -1 AS n FROM went
        UNION ALL
        SELECT campaign_id, state, hours_group, governing_cap, next_attempt_at, not_before, not_after, 1 FROM came
    ) k WHERE state = 'pending' AND coalesce(next_attempt_at, not_before, not_after) IS NOT NULL
    GROUP BY 1, 2, 3, 4, 5, 6 HAVING sum(k.n) <> 0;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER contacts_times_came AFTER INSERT ON contacts REFERENCING NEW TABLE AS came FOR EACH STATEMENT EXECUTE FUNCTION contact_times_came();
CREATE TRIGGER contacts_times_went AFTER DELETE ON contacts REFERENCING OLD TABLE AS went FOR EACH STATEMENT EXECUTE FUNCTION contact_times_went();
CREATE TRIGGER contacts_times_moved AFTER UPDATE ON contacts REFERENCING OLD TABLE AS went NEW TABLE AS came
FOR EACH STATEMENT EXECUTE FUNCTION contact_times_moved();

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION campaign_went() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Entries that a fold writes now are seen after it.
    PERFORM pg_advisory_xact_lock(hashtextextended('tallies', 0));
    DELETE FROM contact_tallies WHERE campaign_id = OLD.id;
    DELETE FROM contact_times WHERE campaign_id = OLD.id;
    DELETE FROM attempt_tallies WHERE campaign_id = OLD.id;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER contacts_times_came ON contacts;
DROP TRIGGER contacts_times_went ON contacts;
DROP TRIGGER contacts_times_moved ON contacts;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION campaign_went() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('tallies', 0));
    DELETE FROM contact_tallies WHERE campaign_id = OLD.id;
    DELETE FROM attempt_tallies WHERE campaign_id = OLD.id;
    RETURN NULL;
END $$;
-- +goose StatementEnd
DROP TABLE contact_times;
DROP FUNCTION contact_times_came, contact_times_went, contact_times_moved;
