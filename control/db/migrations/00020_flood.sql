-- +goose Up
-- Queue, calls and events change by the thousand in a minute: what is known of
-- their rows must not be that of an hour ago, and dead rows not lie about at the
-- head of the queue.
ALTER TABLE attempts SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE events SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE calls SET (autovacuum_analyze_scale_factor = 0.05);
ALTER TABLE subgroups SET (fillfactor = 50);
ALTER TABLE trunks SET (fillfactor = 50);
ALTER TABLE subgroup_counts SET (fillfactor = 50);

-- Attempts that are on are few: who looks for those of a node, or for those whose
-- lease has lapsed, looks at all of them. Each index costs every step of a call.
DROP INDEX attempts_leases;
DROP INDEX attempts_owned;

-- The index by which a reference to a call is checked begins with the call's id:
-- while the database knows nothing of the rows yet, it takes any index that begins
-- with the organization for as good, and reads all calls of it.
ALTER TABLE attempts DROP CONSTRAINT attempts_call;
ALTER TABLE events DROP CONSTRAINT events_call;
ALTER TABLE call_signalling DROP CONSTRAINT call_signalling_org_id_call_id_fkey;
ALTER TABLE calls DROP CONSTRAINT calls_org_id_id_key, ADD CONSTRAINT calls_of_org UNIQUE (id, org_id);
ALTER TABLE attempts ADD CONSTRAINT attempts_call FOREIGN KEY (call_id, org_id) REFERENCES calls (id, org_id) ON DELETE CASCADE;
ALTER TABLE events ADD CONSTRAINT events_call FOREIGN KEY (call_id, org_id) REFERENCES calls (id, org_id) ON DELETE CASCADE;
ALTER TABLE call_signalling ADD CONSTRAINT call_signalling_call FOREIGN KEY (call_id, org_id) REFERENCES calls (id, org_id) ON DELETE CASCADE;

-- A notice belongs to the organization of its call and of its endpoint.
ALTER TABLE webhook_endpoints ADD CONSTRAINT webhook_endpoints_of_org UNIQUE (id, org_id);
ALTER TABLE webhook_deliveries ADD COLUMN org_id text;
UPDATE webhook_deliveries d SET org_id = e.org_id FROM webhook_endpoints e WHERE e.id = d.endpoint_id;
DELETE FROM webhook_deliveries d USING calls c WHERE c.id = d.call_id AND c.org_id <> d.org_id;
ALTER TABLE webhook_deliveries
    ALTER COLUMN org_id SET NOT NULL,
    DROP CONSTRAINT webhook_deliveries_endpoint_id_fkey,
    DROP CONSTRAINT webhook_deliveries_call_id_fkey,
    ADD CONSTRAINT webhook_deliveries_endpoint FOREIGN KEY (endpoint_id, org_id) REFERENCES webhook_endpoints (id, org_id) ON DELETE CASCADE,
    ADD CONSTRAINT webhook_deliveries_call FOREIGN KEY (call_id, org_id) REFERENCES calls (id, org_id) ON DELETE CASCADE;
