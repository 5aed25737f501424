-- +goose Up
-- +goose NO TRANSACTION
SET lock_timeout = 0;
SET statement_timeout = 0;

-- The calls of a day by their slowest response. A list of more days merges those of each day.
DROP INDEX CONCURRENTLY IF EXISTS call_stats_by_slowest;
CREATE INDEX CONCURRENTLY call_stats_by_slowest ON call_stats
    (org_id, ((created_at AT TIME ZONE 'UTC')::date), slowest_ms, call_id) INCLUDE (created_at) WHERE slowest_ms IS NOT NULL;

-- The calls whose slowest response is not stored yet.
DROP INDEX CONCURRENTLY IF EXISTS call_stats_without_slowest;
CREATE INDEX CONCURRENTLY call_stats_without_slowest ON call_stats (call_id) WHERE slowest_ms IS NULL AND times <> '';

-- +goose Down
DROP INDEX call_stats_without_slowest, call_stats_by_slowest;
