-- +goose Up
-- The running campaigns with waiting contacts, as the node that plans sees them. Before ready_at no contact can be
-- called, so other nodes do not read the campaign until then.
CREATE TABLE campaign_plans (
    campaign_id text PRIMARY KEY,
    ready_at    timestamptz NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- +goose Down
DROP TABLE campaign_plans;
