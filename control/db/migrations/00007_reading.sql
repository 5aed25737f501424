-- +goose Up
-- A page of calls is read from one of these indexes, in its order, whatever the
-- filter is. Columns that are rarely set are indexed where they are set.
CREATE INDEX calls_by_status ON calls (org_id, status, created_at, id);
CREATE INDEX calls_by_agent ON calls (org_id, agent_name, created_at, id);
CREATE INDEX calls_by_trunk ON calls (org_id, trunk_id, created_at, id);
CREATE INDEX calls_by_to ON calls (org_id, to_number, created_at, id);
CREATE INDEX calls_by_from ON calls (org_id, from_number, created_at, id);
CREATE INDEX calls_by_campaign ON calls (org_id, campaign_id, created_at, id) WHERE campaign_id IS NOT NULL;
CREATE INDEX calls_by_contact ON calls (org_id, contact_id, created_at, id) WHERE contact_id IS NOT NULL;
CREATE INDEX calls_by_import ON calls (org_id, import_id, created_at, id) WHERE import_id IS NOT NULL;
CREATE INDEX calls_by_external ON calls (org_id, external_id, created_at, id) WHERE external_id IS NOT NULL;
CREATE INDEX calls_by_reason ON calls (org_id, disconnection_reason, created_at, id) WHERE disconnection_reason IS NOT NULL;
CREATE INDEX calls_by_answerer ON calls (org_id, answered_by, created_at, id) WHERE answered_by IS NOT NULL;
CREATE INDEX calls_by_web ON calls (org_id, created_at, id) WHERE call_type = 'web';

-- How long a call was on, by class: an index gives an order by time within each.
-- The bounds, in seconds, are those of package store.
ALTER TABLE calls ADD COLUMN duration_class smallint GENERATED ALWAYS AS (
    width_bucket(extract(epoch FROM ended_at - answered_at)::float8,
        '{5,10,20,30,45,60,90,120,180,300,600,1200,1800,3600}'::float8[])) STORED;
CREATE INDEX calls_by_duration ON calls (org_id, duration_class, created_at, id) WHERE duration_class IS NOT NULL;

-- A call that is to be forgotten is shown no more.
ALTER TABLE calls ADD COLUMN erased_at timestamptz;
CREATE INDEX calls_erased ON calls (erased_at) WHERE erased_at IS NOT NULL;
CREATE INDEX calls_recorded ON calls (org_id, created_at) WHERE recording_key IS NOT NULL;
-- Up to when the words of an organization's calls have been deleted.
ALTER TABLE organizations ADD COLUMN forgotten_until timestamptz NOT NULL DEFAULT '-infinity';

-- Events walk two lines: what is quick, and then what may take its time.
ALTER TABLE events ADD COLUMN line smallint NOT NULL DEFAULT 0;

-- While a secret is changed, notices are signed with the one before it too.
ALTER TABLE webhook_endpoints ADD COLUMN previous_secret text NOT NULL DEFAULT '';
CREATE INDEX webhook_deliveries_call ON webhook_deliveries (call_id);
CREATE INDEX webhook_deliveries_settled ON webhook_deliveries (settled_at) WHERE state <> 'pending';
