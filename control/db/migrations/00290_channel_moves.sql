-- +goose Up
-- Changes of attempts are counted once for each statement and key, not once for each attempt. Claims and ends change
-- many attempts in a statement, and each change of a counter leaves a dead version, which stays while another
-- transaction holds an old snapshot.
-- +goose StatementBegin
CREATE FUNCTION move_channels() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_channels(trunk_id, subgroup_id, org_id, sum(n)::integer) FROM (
        SELECT trunk_id, subgroup_id, org_id, -1 AS n FROM before WHERE state IN ('claimed', 'intent', 'sent', 'ringing', 'answered')
        UNION ALL SELECT trunk_id, subgroup_id, org_id, 1 FROM after WHERE state IN ('claimed', 'intent', 'sent', 'ringing', 'answered')) x
    WHERE trunk_id <> '' GROUP BY trunk_id, subgroup_id, org_id HAVING sum(n) <> 0;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE OR REPLACE TRIGGER attempts_channels_moved AFTER UPDATE ON attempts REFERENCING OLD TABLE AS before NEW TABLE AS after
FOR EACH STATEMENT EXECUTE FUNCTION move_channels();

-- +goose Down
CREATE OR REPLACE TRIGGER attempts_channels_moved AFTER UPDATE ON attempts FOR EACH ROW
WHEN ((OLD.state IN ('claimed', 'intent', 'sent', 'ringing', 'answered')) <> (NEW.state IN ('claimed', 'intent', 'sent', 'ringing', 'answered'))
    OR (OLD.trunk_id, OLD.subgroup_id, OLD.org_id) IS DISTINCT FROM (NEW.trunk_id, NEW.subgroup_id, NEW.org_id))
EXECUTE FUNCTION count_channels();
DROP FUNCTION move_channels;
