-- +goose Up
-- The slowest response of a call, and what orders calls by it. The columns are null for calls without a response time, and for
-- those that the previous release counted until the follower of the statistics reads them again.
ALTER TABLE call_stats
    ADD COLUMN slowest_ms integer,
    ADD COLUMN org_id text,
    ADD COLUMN created_at timestamptz; -- of the call

-- +goose Down
ALTER TABLE call_stats DROP COLUMN slowest_ms, DROP COLUMN org_id, DROP COLUMN created_at;
