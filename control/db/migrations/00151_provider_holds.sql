-- +goose Up
-- Whether each node can talk as the agents of campaigns that run. What is not repeated
-- is no longer true.
CREATE TABLE agent_sights (
    agent_id text NOT NULL REFERENCES agents ON DELETE CASCADE,
    version  integer NOT NULL,
    node     text NOT NULL,
    down     boolean NOT NULL, -- its recognizer, model or voice cannot be used, nor a fallback
    at       timestamptz NOT NULL,
    PRIMARY KEY (agent_id, version, node)
);

-- Campaigns that call nobody, or did, because too many of their calls broke by a fault
-- of this service. No row: there was never a reason to.
CREATE TABLE campaign_breakers (
    campaign_id text PRIMARY KEY REFERENCES campaigns ON DELETE CASCADE,
    open        boolean NOT NULL DEFAULT false,
    since       timestamptz,              -- of the last opening or closing
    wait        interval NOT NULL DEFAULT '0',
    probe_at    timestamptz,              -- from when on one call may be tried
    probe_call  text NOT NULL DEFAULT ''  -- the call that tries
);
