-- +goose Up
SET LOCAL statement_timeout = 0; -- a long table takes its time
LOCK TABLE calls IN SHARE ROW EXCLUSIVE MODE;

-- The most that the calls of a campaign may cost; null for no limit.
ALTER TABLE campaigns ADD COLUMN budget_nano bigint CHECK (budget_nano > 0);

-- What ended calls cost, by organization and by campaign. A call appends a row when its cost is set or raised, in the
-- same transaction: no row is updated, so no call waits for another. Rows are folded now and then. Sums are exact at
-- every instant, and calls that are deleted later stay counted.
CREATE TABLE cost_tallies (
    owner     text NOT NULL,        -- organization or campaign
    slot      timestamptz NOT NULL, -- quarter of an hour of the calls' registration; -infinity for a campaign
    cost_nano bigint NOT NULL,
    folded    boolean NOT NULL DEFAULT false
);
CREATE INDEX cost_tallies_by_owner ON cost_tallies (owner, slot) INCLUDE (cost_nano);
CREATE INDEX cost_tallies_loose ON cost_tallies (owner) WHERE NOT folded;
ALTER TABLE cost_tallies SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.2);

-- +goose StatementBegin
CREATE FUNCTION call_cost_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    added bigint := coalesce(NEW.cost_nano, 0);
BEGIN
    IF TG_OP = 'UPDATE' THEN
        added := added - coalesce(OLD.cost_nano, 0);
    END IF;
    IF added > 0 THEN
        INSERT INTO cost_tallies (owner, slot, cost_nano)
        SELECT NEW.org_id, date_bin('15 minutes', NEW.created_at, '2000-01-01 00:00:00+00'), added
        UNION ALL SELECT NEW.campaign_id, '-infinity', added WHERE NEW.campaign_id IS NOT NULL;
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION campaign_costs_went() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM cost_tallies WHERE owner = OLD.id;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER calls_cost_came AFTER INSERT ON calls FOR EACH ROW WHEN (NEW.cost_nano > 0) EXECUTE FUNCTION call_cost_changed();
CREATE TRIGGER calls_cost_changed AFTER UPDATE OF cost_nano ON calls FOR EACH ROW WHEN (NEW.cost_nano IS DISTINCT FROM OLD.cost_nano) EXECUTE FUNCTION call_cost_changed();
CREATE TRIGGER campaigns_cost_went AFTER DELETE ON campaigns FOR EACH ROW EXECUTE FUNCTION campaign_costs_went();

INSERT INTO cost_tallies (owner, slot, cost_nano, folded)
SELECT org_id, date_bin('15 minutes', created_at, '2000-01-01 00:00:00+00'), sum(cost_nano), true FROM calls WHERE cost_nano > 0 GROUP BY 1, 2
UNION ALL
SELECT campaign_id, '-infinity', sum(cost_nano), true FROM calls WHERE cost_nano > 0 AND campaign_id IS NOT NULL GROUP BY 1;
