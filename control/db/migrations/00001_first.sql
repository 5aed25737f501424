-- +goose Up
CREATE TABLE organizations (
    id         text PRIMARY KEY,
    name       text NOT NULL UNIQUE,
    timezone   text NOT NULL DEFAULT 'UTC',
    settings   jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE suppressions (
    org_id text NOT NULL REFERENCES organizations ON DELETE CASCADE,
    number text NOT NULL, -- digits
    PRIMARY KEY (org_id, number)
);

CREATE TABLE api_keys (
    id           text PRIMARY KEY,
    org_id       text NOT NULL REFERENCES organizations ON DELETE CASCADE,
    name         text NOT NULL DEFAULT '',
    hash         bytea NOT NULL UNIQUE, -- SHA-256 of the whole secret
    rate_limit   integer NOT NULL DEFAULT 0, -- per minute; 0: the platform's; -1: none
    privileged   boolean NOT NULL DEFAULT false,
    created_at   timestamptz NOT NULL DEFAULT now(),
    revoked_at   timestamptz,
    last_used_at timestamptz
);

CREATE TABLE agents (
    id                text PRIMARY KEY,
    org_id            text NOT NULL REFERENCES organizations ON DELETE CASCADE,
    name              text NOT NULL,
    draft             jsonb NOT NULL,
    published_version integer, -- NULL: not published
    created_at        timestamptz NOT NULL DEFAULT now(),
    updated_at        timestamptz NOT NULL DEFAULT now(),
    UNIQUE (org_id, name),
    UNIQUE (org_id, id)
);

CREATE TABLE agent_versions (
    agent_id   text NOT NULL REFERENCES agents ON DELETE CASCADE,
    version    integer NOT NULL,
    definition jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (agent_id, version)
);

CREATE TABLE trunks (
    id               text PRIMARY KEY,
    org_id           text NOT NULL REFERENCES organizations ON DELETE CASCADE,
    name             text NOT NULL,
    proxy            text NOT NULL,
    username         text NOT NULL DEFAULT '',
    password         text NOT NULL DEFAULT '',
    caller_numbers   text[] NOT NULL DEFAULT '{}',
    calls_per_second double precision NOT NULL DEFAULT 0, -- 0: no limit
    concurrent_calls integer NOT NULL DEFAULT 0,          -- 0: no limit
    next_dial_at     timestamptz NOT NULL DEFAULT now(),
    created_at       timestamptz NOT NULL DEFAULT now(),
    UNIQUE (org_id, name),
    UNIQUE (org_id, id)
);

CREATE TABLE subgroups (
    id                   text PRIMARY KEY,
    org_id               text NOT NULL,
    trunk_id             text NOT NULL,
    name                 text NOT NULL,
    dial_prefix          text NOT NULL DEFAULT '',
    allowed_destinations text[] NOT NULL DEFAULT '{}', -- empty: none
    caller_numbers       text[] NOT NULL DEFAULT '{}', -- empty: the trunk's
    concurrent_calls     integer NOT NULL,
    calls_per_minute     integer NOT NULL,
    next_dial_at         timestamptz NOT NULL DEFAULT now(),
    created_at           timestamptz NOT NULL DEFAULT now(),
    UNIQUE (trunk_id, name),
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, trunk_id) REFERENCES trunks (org_id, id) ON DELETE CASCADE
);

CREATE TABLE subgroup_agents (
    org_id      text NOT NULL,
    subgroup_id text NOT NULL,
    agent_id    text NOT NULL,
    PRIMARY KEY (subgroup_id, agent_id),
    FOREIGN KEY (org_id, subgroup_id) REFERENCES subgroups (org_id, id) ON DELETE CASCADE,
    FOREIGN KEY (org_id, agent_id) REFERENCES agents (org_id, id) ON DELETE CASCADE
);

-- Calls outlive the trunks and agents they went through.
CREATE TABLE calls (
    id                   text PRIMARY KEY,
    org_id               text NOT NULL REFERENCES organizations ON DELETE CASCADE,
    call_type            text NOT NULL,
    status               text NOT NULL,
    agent_id             text NOT NULL,
    agent_name           text NOT NULL,
    agent_version        integer NOT NULL,
    to_number            text NOT NULL, -- digits, as normalised
    from_number          text NOT NULL,
    trunk_id             text NOT NULL,
    route_id             text NOT NULL,
    dial_number          text NOT NULL, -- with the prefix
    campaign_id          text,
    contact_id           text,
    import_id            text,
    external_id          text,
    attempt              integer NOT NULL DEFAULT 1,
    name                 text NOT NULL DEFAULT '',
    -- Text as it came: jsonb prints 1e-16000 with all its zeros.
    metadata             json NOT NULL DEFAULT '{}',
    variables            json NOT NULL DEFAULT '{}',
    ring_seconds         integer NOT NULL,
    max_duration_seconds integer NOT NULL DEFAULT 0,
    voicemail            text NOT NULL DEFAULT '',
    created_at           timestamptz NOT NULL,
    dialed_at            timestamptz,
    ringing_at           timestamptz,
    answered_at          timestamptz,
    ended_at             timestamptz,
    answered_by          text,
    disconnection_reason text,
    hangup_by            text,
    sip_status           integer,
    sip_reason           text,
    transfer             jsonb,
    recording_status     text NOT NULL DEFAULT 'none',
    recording_key        text,
    call_analysis        jsonb,
    analysis_status      text NOT NULL DEFAULT 'none',
    end_requested_at     timestamptz,
    UNIQUE (org_id, id)
);
CREATE INDEX calls_by_time ON calls (org_id, created_at DESC, id DESC);
CREATE INDEX calls_by_route ON calls (route_id, created_at DESC);
CREATE INDEX calls_alive ON calls (route_id) WHERE status IN ('queued', 'ringing', 'ongoing');

-- One row an attempt to reach a phone. While it is scheduled it is the dial queue.
CREATE TABLE attempts (
    id          text PRIMARY KEY,
    call_id     text NOT NULL REFERENCES calls ON DELETE CASCADE,
    org_id      text NOT NULL,
    trunk_id    text NOT NULL,
    subgroup_id text NOT NULL,
    attempt_no  integer NOT NULL DEFAULT 1,
    state       text NOT NULL DEFAULT 'scheduled',
    owner       text NOT NULL DEFAULT '', -- the node, as a process
    home        text NOT NULL DEFAULT '', -- the node, as a data directory
    epoch       bigint NOT NULL DEFAULT 0,
    lease_until timestamptz,
    created_at  timestamptz NOT NULL DEFAULT now(),
    claimed_at  timestamptz,
    UNIQUE (call_id, attempt_no)
);
CREATE INDEX attempts_queue ON attempts (subgroup_id, created_at, id) WHERE state = 'scheduled';
CREATE INDEX attempts_alive ON attempts (subgroup_id, trunk_id) WHERE state IN ('claimed', 'intent', 'sent', 'ringing', 'answered');
CREATE INDEX attempts_claimed ON attempts (claimed_at);
CREATE INDEX attempts_leases ON attempts (owner, lease_until) WHERE state IN ('claimed', 'intent', 'sent', 'ringing', 'answered');
-- The database, not the code, forbids two live attempts of one call.
CREATE UNIQUE INDEX attempts_one_alive ON attempts (call_id) WHERE state IN ('claimed', 'intent', 'sent', 'ringing', 'answered');

CREATE TABLE call_lines (
    call_id text NOT NULL REFERENCES calls ON DELETE CASCADE,
    n       integer NOT NULL,
    item    json NOT NULL,
    PRIMARY KEY (call_id, n)
);

CREATE TABLE call_turns (
    call_id text NOT NULL REFERENCES calls ON DELETE CASCADE,
    n       integer NOT NULL,
    item    json NOT NULL,
    PRIMARY KEY (call_id, n)
);

CREATE TABLE events (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    call_id     text NOT NULL REFERENCES calls ON DELETE CASCADE,
    org_id      text NOT NULL,
    kind        text NOT NULL,
    home        text NOT NULL DEFAULT '', -- the data directory that holds what belongs to it
    created_at  timestamptz NOT NULL DEFAULT now(),
    followed    text[] NOT NULL DEFAULT '{}',
    tries       integer NOT NULL DEFAULT 0,
    next_at     timestamptz NOT NULL DEFAULT now(),
    lease_until timestamptz,
    done_at     timestamptz,
    UNIQUE (call_id, kind)
);
CREATE INDEX events_open ON events (next_at) WHERE done_at IS NULL;
CREATE INDEX events_open_call ON events (call_id, id) WHERE done_at IS NULL;

CREATE TABLE idempotency_keys (
    scope       text NOT NULL, -- what the key is unique in
    key         text NOT NULL,
    fingerprint bytea NOT NULL,
    token       text NOT NULL, -- of the request that holds it
    done        boolean NOT NULL DEFAULT false,
    status      integer,
    body        bytea,
    created_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (scope, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

CREATE TABLE webhook_endpoints (
    id              text PRIMARY KEY,
    org_id          text NOT NULL REFERENCES organizations ON DELETE CASCADE,
    url             text NOT NULL,
    secret          text NOT NULL,
    events          text[] NOT NULL,
    disabled_at     timestamptz,
    disabled_reason text NOT NULL DEFAULT '',
    failed_in_a_row integer NOT NULL DEFAULT 0,
    last_success_at timestamptz,
    throttled_until timestamptz,
    owner           text NOT NULL DEFAULT '',
    lease_until     timestamptz,
    created_at      timestamptz NOT NULL DEFAULT now(),
    UNIQUE (org_id, url)
);

CREATE TABLE webhook_deliveries (
    id          text PRIMARY KEY, -- the webhook-id
    endpoint_id text NOT NULL REFERENCES webhook_endpoints ON DELETE CASCADE,
    call_id     text NOT NULL REFERENCES calls ON DELETE CASCADE,
    type        text NOT NULL,
    payload     bytea NOT NULL,
    state       text NOT NULL DEFAULT 'pending', -- pending, delivered, dead
    tries       integer NOT NULL DEFAULT 0,
    next_at     timestamptz NOT NULL,
    last_status integer,
    last_error  text NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL,
    settled_at  timestamptz,
    UNIQUE (endpoint_id, call_id, type)
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, next_at) WHERE state = 'pending';

-- Keys that all nodes of one database share.
CREATE TABLE shared_keys (
    name  text PRIMARY KEY,
    value bytea NOT NULL
);
