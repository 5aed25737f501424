-- +goose Up
-- The number of attempts that occupy a channel, by trunk, subgroup and organization: the sum of n. A transaction adds
-- its changes to a row that no other transaction has locked, or inserts one. So no transaction waits for a counter, and
-- there are at most as many rows of one key as transactions that changed it at the same time.
CREATE TABLE channel_counts (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    trunk_id    text NOT NULL,
    subgroup_id text NOT NULL,
    org_id      text NOT NULL,
    n           integer NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX channel_counts_by_key ON channel_counts (trunk_id, subgroup_id, org_id);

-- +goose StatementBegin
CREATE FUNCTION add_channels(trunk text, subgroup text, org text, added integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE channel_counts SET n = n + added WHERE id = (
        SELECT id FROM channel_counts WHERE trunk_id = trunk AND subgroup_id = subgroup AND org_id = org LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED);
    IF NOT FOUND THEN
        INSERT INTO channel_counts (trunk_id, subgroup_id, org_id, n) VALUES (trunk, subgroup, org, added);
    END IF;
END $$;
-- +goose StatementEnd

-- Attempts of web calls have no trunk.
-- +goose StatementBegin
CREATE FUNCTION count_channels() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' AND OLD.trunk_id <> '' AND OLD.state IN ('claimed', 'intent', 'sent', 'ringing', 'answered') THEN
        PERFORM add_channels(OLD.trunk_id, OLD.subgroup_id, OLD.org_id, -1);
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.trunk_id <> '' AND NEW.state IN ('claimed', 'intent', 'sent', 'ringing', 'answered') THEN
        PERFORM add_channels(NEW.trunk_id, NEW.subgroup_id, NEW.org_id, 1);
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER attempts_channels_taken AFTER INSERT ON attempts FOR EACH ROW
WHEN (NEW.state IN ('claimed', 'intent', 'sent', 'ringing', 'answered')) EXECUTE FUNCTION count_channels();
CREATE TRIGGER attempts_channels_freed AFTER DELETE ON attempts FOR EACH ROW
WHEN (OLD.state IN ('claimed', 'intent', 'sent', 'ringing', 'answered')) EXECUTE FUNCTION count_channels();
CREATE TRIGGER attempts_channels_moved AFTER UPDATE ON attempts FOR EACH ROW
WHEN ((OLD.state IN ('claimed', 'intent', 'sent', 'ringing', 'answered')) <> (NEW.state IN ('claimed', 'intent', 'sent', 'ringing', 'answered'))
    OR (OLD.trunk_id, OLD.subgroup_id, OLD.org_id) IS DISTINCT FROM (NEW.trunk_id, NEW.subgroup_id, NEW.org_id))
EXECUTE FUNCTION count_channels();

-- Nobody changes attempts meanwhile: the triggers have locked them.
-- policy: allow insert, because live attempts are few and have an index of their own
INSERT INTO channel_counts (trunk_id, subgroup_id, org_id, n)
SELECT trunk_id, subgroup_id, org_id, count(*) FROM attempts
WHERE state IN ('claimed', 'intent', 'sent', 'ringing', 'answered') AND trunk_id <> '' GROUP BY 1, 2, 3;

-- +goose Down
DROP TRIGGER attempts_channels_taken ON attempts;
DROP TRIGGER attempts_channels_freed ON attempts;
DROP TRIGGER attempts_channels_moved ON attempts;
DROP FUNCTION count_channels, add_channels;
DROP TABLE channel_counts;
