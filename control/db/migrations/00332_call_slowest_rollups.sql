-- +goose Up
-- +goose NO TRANSACTION
SET lock_timeout = 0;
SET statement_timeout = 0;

-- The index of 00331 with the reference to the call's row of call_rollups, which names its agent and campaign.
DROP INDEX CONCURRENTLY IF EXISTS call_stats_by_slowest_rollup;
CREATE INDEX CONCURRENTLY call_stats_by_slowest_rollup ON call_stats
    (org_id, ((created_at AT TIME ZONE 'UTC')::date), slowest_ms, call_id) INCLUDE (created_at, rollup_id) WHERE slowest_ms IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS call_stats_by_slowest;

-- +goose Down
SET lock_timeout = 0;
SET statement_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS call_stats_by_slowest;
CREATE INDEX CONCURRENTLY call_stats_by_slowest ON call_stats
    (org_id, ((created_at AT TIME ZONE 'UTC')::date), slowest_ms, call_id) INCLUDE (created_at) WHERE slowest_ms IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS call_stats_by_slowest_rollup;
