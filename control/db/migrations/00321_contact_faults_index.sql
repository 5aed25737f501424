-- +goose Up
-- +goose NO TRANSACTION
SET lock_timeout = 0;
SET statement_timeout = 0;

-- The contacts whose attempts ended with a fault of Parley or a provider, for their number on the page of a campaign.
DROP INDEX CONCURRENTLY IF EXISTS contacts_faulted;
CREATE INDEX CONCURRENTLY contacts_faulted ON contacts (campaign_id, id) WHERE state = 'exhausted' AND fault <> '';

-- +goose Down
-- +goose NO TRANSACTION
DROP INDEX CONCURRENTLY IF EXISTS contacts_faulted;
