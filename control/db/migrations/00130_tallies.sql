-- +goose Up
-- It takes as long as it takes, and locks in the order in which calls do.
SET LOCAL statement_timeout = 0;
LOCK TABLE contact_attempts, contacts, campaigns IN SHARE ROW EXCLUSIVE MODE;

-- How many contacts of a campaign are alike, and how many attempts came to what. Who
-- changes a contact or an attempt appends here what that changes, in the same
-- transaction: no row is written twice, so nobody waits for anybody. What was appended
-- is folded now and then. The sums are exact at every instant.
CREATE TABLE contact_tallies (
    campaign_id text NOT NULL,
    state       text NOT NULL,
    reason      text NOT NULL,
    at_launch   boolean NOT NULL, -- suppressed then
    cap         text NOT NULL,
    ambiguous   boolean NOT NULL, -- in several time zones
    hours_group text NOT NULL,    -- of those who wait
    tried       boolean NOT NULL, -- likewise: called before
    timed       boolean NOT NULL, -- likewise: for a time of their own too, or until one
    n           integer NOT NULL,
    folded      boolean NOT NULL DEFAULT false
);
CREATE INDEX contact_tallies_by_campaign ON contact_tallies (campaign_id);
CREATE INDEX contact_tallies_loose ON contact_tallies (campaign_id) WHERE NOT folded;
ALTER TABLE contact_tallies SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.2);

CREATE TABLE attempt_tallies (
    campaign_id text NOT NULL,
    outcome     text NOT NULL, -- empty while it is on
    n           integer NOT NULL,
    folded      boolean NOT NULL DEFAULT false
);
CREATE INDEX attempt_tallies_by_campaign ON attempt_tallies (campaign_id);
CREATE INDEX attempt_tallies_loose ON attempt_tallies (campaign_id) WHERE NOT folded;
ALTER TABLE attempt_tallies SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.2);

-- A list comes in, or goes, at once.
-- +goose StatementBegin
CREATE FUNCTION contacts_came() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO contact_tallies (campaign_id, state, reason, at_launch, cap, ambiguous, hours_group, tried, timed, n)
    SELECT k.campaign_id, k.state, k.reason, k.dnc_at_launch, k.governing_cap, cardinality(k.zones) > 1,
        CASE WHEN k.state = 'pending' THEN k.hours_group ELSE '' END, k.state = 'pending' AND k.attempts > 0, k.state = 'pending' AND coalesce(k.next_attempt_at, k.not_before, k.not_after) IS NOT NULL, count(*)
    FROM came k GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- With a campaign its tallies go.
-- +goose StatementBegin
CREATE FUNCTION contacts_went() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO contact_tallies (campaign_id, state, reason, at_launch, cap, ambiguous, hours_group, tried, timed, n)
    SELECT k.campaign_id, k.state, k.reason, k.dnc_at_launch, k.governing_cap, cardinality(k.zones) > 1,
        CASE WHEN k.state = 'pending' THEN k.hours_group ELSE '' END, k.state = 'pending' AND k.attempts > 0, k.state = 'pending' AND coalesce(k.next_attempt_at, k.not_before, k.not_after) IS NOT NULL, -count(*)
    FROM went k WHERE EXISTS (SELECT FROM campaigns c WHERE c.id = k.campaign_id) GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- However many change at once, few rows are appended; who is put off alone changes none.
-- +goose StatementBegin
CREATE FUNCTION contacts_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO contact_tallies (campaign_id, state, reason, at_launch, cap, ambiguous, hours_group, tried, timed, n)
    SELECT k.campaign_id, k.state, k.reason, k.dnc_at_launch, k.governing_cap, k.ambiguous,
        CASE WHEN k.state = 'pending' THEN k.hours_group ELSE '' END, k.state = 'pending' AND k.attempts > 0, k.state = 'pending' AND k.own IS NOT NULL, sum(k.n)
    FROM (
        SELECT campaign_id, state, reason, dnc_at_launch, governing_cap, cardinality(zones) > 1 AS ambiguous, hours_group, attempts, coalesce(next_attempt_at, not_before, not_after) AS own, -1 AS n FROM went
        UNION ALL
        SELECT campaign_id, state, reason, dnc_at_launch, governing_cap, cardinality(zones) > 1, hours_group, attempts, coalesce(next_attempt_at, not_before, not_after), 1 FROM came
    ) k GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9 HAVING sum(k.n) <> 0;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION attempt_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' AND EXISTS (SELECT FROM campaigns c WHERE c.id = OLD.campaign_id) THEN
        INSERT INTO attempt_tallies (campaign_id, outcome, n) VALUES (OLD.campaign_id, coalesce(OLD.outcome, ''), -1);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO attempt_tallies (campaign_id, outcome, n) VALUES (NEW.campaign_id, coalesce(NEW.outcome, ''), 1);
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION campaign_went() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- What is being folded now is seen after it.
    PERFORM pg_advisory_xact_lock(hashtextextended('tallies', 0));
    DELETE FROM contact_tallies WHERE campaign_id = OLD.id;
    DELETE FROM attempt_tallies WHERE campaign_id = OLD.id;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER contacts_tally_came AFTER INSERT ON contacts REFERENCING NEW TABLE AS came FOR EACH STATEMENT EXECUTE FUNCTION contacts_came();
CREATE TRIGGER contacts_tally_went AFTER DELETE ON contacts REFERENCING OLD TABLE AS went FOR EACH STATEMENT EXECUTE FUNCTION contacts_went();
CREATE TRIGGER contacts_tally_moved AFTER UPDATE ON contacts REFERENCING OLD TABLE AS went NEW TABLE AS came FOR EACH STATEMENT EXECUTE FUNCTION contacts_moved();
CREATE TRIGGER attempts_tally_came AFTER INSERT OR DELETE ON contact_attempts FOR EACH ROW EXECUTE FUNCTION attempt_moved();
CREATE TRIGGER attempts_tally_moved AFTER UPDATE ON contact_attempts FOR EACH ROW WHEN (OLD.outcome IS DISTINCT FROM NEW.outcome) EXECUTE FUNCTION attempt_moved();
CREATE TRIGGER campaigns_tally_went AFTER DELETE ON campaigns FOR EACH ROW EXECUTE FUNCTION campaign_went();

-- Nobody changes contacts meanwhile: the triggers have locked them.
INSERT INTO contact_tallies
SELECT k.campaign_id, k.state, k.reason, k.dnc_at_launch, k.governing_cap, cardinality(k.zones) > 1,
    CASE WHEN k.state = 'pending' THEN k.hours_group ELSE '' END, k.state = 'pending' AND k.attempts > 0, k.state = 'pending' AND coalesce(k.next_attempt_at, k.not_before, k.not_after) IS NOT NULL, count(*), true
FROM contacts k GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9;
INSERT INTO attempt_tallies SELECT campaign_id, coalesce(outcome, ''), count(*), true FROM contact_attempts GROUP BY 1, 2;

-- Who waits for a time of their own is looked at: time changes how they stand.
CREATE INDEX contacts_timed ON contacts (campaign_id, hours_group, next_attempt_at, not_before, not_after, governing_cap)
    WHERE state = 'pending' AND (next_attempt_at IS NOT NULL OR not_before IS NOT NULL OR not_after IS NOT NULL);

-- In which zone the contact is; empty where only the campaign says so.
ALTER TABLE contact_attempts ADD COLUMN zone text NOT NULL DEFAULT '';
UPDATE contact_attempts x SET zone = coalesce(CASE WHEN c.use_contact_timezone THEN nullif(k.timezone, '') END, k.zones[1], '')
FROM contacts k JOIN campaigns c ON c.id = k.campaign_id WHERE k.id = x.contact_id;
