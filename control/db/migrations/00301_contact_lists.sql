-- +goose Up
-- +goose NO TRANSACTION
SET lock_timeout = 0;
SET statement_timeout = 0;

-- The suppressed contacts of a campaign by reason, for the list of contacts.
DROP INDEX CONCURRENTLY IF EXISTS contacts_by_reason;
CREATE INDEX CONCURRENTLY contacts_by_reason ON contacts (campaign_id, reason, id) WHERE state = 'suppressed';

-- The few contacts whose state does not say whether they were called.
DROP INDEX CONCURRENTLY IF EXISTS contacts_tried_otherwise;
CREATE INDEX CONCURRENTLY contacts_tried_otherwise ON contacts (campaign_id, state)
    WHERE (state = 'suppressed' AND attempts > 0 OR state = 'exhausted' AND attempts = 0);
