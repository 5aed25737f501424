-- +goose Up
CREATE TABLE campaigns (
    id                    text PRIMARY KEY,
    org_id                text NOT NULL REFERENCES organizations ON DELETE CASCADE,
    status                text NOT NULL,
    status_reason         text NOT NULL DEFAULT '',
    created_via           text NOT NULL,
    launched_via          text NOT NULL DEFAULT '',
    name                  text NOT NULL,
    agent_id              text NOT NULL, -- ours; an agent may be renamed
    agent_name            text NOT NULL, -- as it was called at the creation
    agent_version         integer NOT NULL DEFAULT 0,
    timezone              text NOT NULL,
    timezone_source       text NOT NULL,
    starts_at             timestamptz,
    ends_at               timestamptz,
    accepts_additions     boolean NOT NULL,
    calls_per_minute      integer NOT NULL,
    call_strategy         text NOT NULL,
    classification        text NOT NULL,
    retry                 jsonb NOT NULL,
    duplicate_action      text NOT NULL,
    use_contact_timezone  boolean NOT NULL,
    working_hours         jsonb NOT NULL,
    trunk_id              text NOT NULL,
    route_id              text NOT NULL,
    from_number           text NOT NULL,
    dnc                   text NOT NULL,
    market                text NOT NULL DEFAULT '',
    launch_import_id      text,
    frozen_screen         jsonb, -- of the launch
    created_at            timestamptz NOT NULL,
    updated_at            timestamptz NOT NULL,
    launched_at           timestamptz,
    completed_at          timestamptz,
    cancelled_at          timestamptz,
    UNIQUE (org_id, id)
);
CREATE INDEX campaigns_by_time ON campaigns (org_id, created_at, id);
CREATE INDEX campaigns_live ON campaigns (status, ends_at) WHERE status IN ('scheduled', 'running', 'paused');

-- A list as it was handed over, and what became of it. It does not change.
CREATE TABLE imports (
    id           text PRIMARY KEY,
    org_id       text NOT NULL,
    campaign_id  text NOT NULL,
    kind         text NOT NULL, -- launch, batch, file
    status       text NOT NULL, -- accepted, refused
    refusal_code text NOT NULL DEFAULT '',
    created_via  text NOT NULL,
    rows_seen    integer NOT NULL,
    accepted     integer NOT NULL,
    warned       integer NOT NULL,
    rejected     integer NOT NULL,
    duplicates   integer NOT NULL,
    source_key   text, -- of the rows as they came, in the bucket
    screen       jsonb, -- of a batch, frozen
    created_at   timestamptz NOT NULL,
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, campaign_id) REFERENCES campaigns (org_id, id) ON DELETE CASCADE
);
CREATE INDEX imports_by_campaign ON imports (campaign_id, created_at);

CREATE TABLE import_rows (
    import_id text NOT NULL REFERENCES imports ON DELETE CASCADE,
    n         integer NOT NULL,
    phone     text NOT NULL, -- as sent
    number    text NOT NULL, -- E.164; empty where it is none
    name      text NOT NULL,
    timezone  text NOT NULL,
    variables json,
    status    text NOT NULL, -- accepted, warned, rejected, duplicate
    issues    json,
    PRIMARY KEY (import_id, n)
);

CREATE TABLE contacts (
    id              text PRIMARY KEY,
    org_id          text NOT NULL,
    campaign_id     text NOT NULL,
    import_id       text NOT NULL,
    n               integer NOT NULL, -- the row of the import
    number          text NOT NULL,    -- E.164
    last_ten        text GENERATED ALWAYS AS (right(number, 10)) STORED,
    name            text NOT NULL DEFAULT '',
    variables       json NOT NULL DEFAULT '{}',
    metadata        json NOT NULL DEFAULT '{}',
    external_id     text NOT NULL DEFAULT '',
    language        text NOT NULL DEFAULT '',
    timezone        text NOT NULL DEFAULT '', -- that the row named
    states          text[] NOT NULL DEFAULT '{}',
    zones           text[] NOT NULL DEFAULT '{}',
    priority        smallint NOT NULL DEFAULT 5,
    not_before      timestamptz,
    not_after       timestamptz,
    consent_at      timestamptz,
    state           text NOT NULL, -- pending, in_call, awaiting, done, exhausted, suppressed
    reason          text NOT NULL DEFAULT '', -- of the suppression
    dnc_at_launch   boolean NOT NULL DEFAULT false,
    governing_cap   text NOT NULL DEFAULT '',
    attempts        integer NOT NULL DEFAULT 0, -- dials that count
    next_attempt_at timestamptz,
    call_id         text, -- of the call that is on, or was the last
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    UNIQUE (import_id, n),
    FOREIGN KEY (org_id, campaign_id) REFERENCES campaigns (org_id, id) ON DELETE CASCADE,
    FOREIGN KEY (org_id, import_id) REFERENCES imports (org_id, id) ON DELETE CASCADE
);
CREATE INDEX contacts_by_state ON contacts (campaign_id, state, priority DESC, next_attempt_at, id);
CREATE INDEX contacts_by_last_ten ON contacts (org_id, last_ten);
CREATE INDEX contacts_by_number ON contacts (org_id, number) WHERE state IN ('pending', 'in_call', 'awaiting');

-- A copy of a do-not-call registry. The newest of a name counts.
CREATE TABLE registries (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name          text NOT NULL, -- us_national, us_state_xx
    file          text NOT NULL, -- its key in the bucket
    sha256        text NOT NULL,
    numbers       bigint NOT NULL,
    area_codes    text[] NOT NULL,
    downloaded_at timestamptz NOT NULL,
    loaded_at     timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX registries_newest ON registries (name, id);

-- What was screened, when, against what. Nothing of it is changed or deleted
-- while its campaign is there.
CREATE TABLE dnc_audit (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    org_id      text NOT NULL,
    campaign_id text NOT NULL,
    import_id   text NOT NULL,
    screen      jsonb NOT NULL,
    registries  jsonb NOT NULL,
    rules       text NOT NULL, -- version of the market package
    at          timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (org_id, campaign_id) REFERENCES campaigns (org_id, id) ON DELETE CASCADE
);

-- Who confirmed the consent of whom.
CREATE TABLE attestations (
    id             text PRIMARY KEY,
    org_id         text NOT NULL,
    campaign_id    text NOT NULL,
    import_id      text NOT NULL DEFAULT '', -- empty for a campaign without a list
    api_key_id     text NOT NULL DEFAULT '',
    actor          text NOT NULL,
    consent_tier   text NOT NULL,
    classification text NOT NULL,
    text_version   text NOT NULL,
    ip             text NOT NULL DEFAULT '',
    user_agent     text NOT NULL DEFAULT '',
    contacts       bytea NOT NULL, -- SHA-256 of the numbers
    fingerprint    text NOT NULL,  -- of the screen
    at             timestamptz NOT NULL,
    FOREIGN KEY (org_id, campaign_id) REFERENCES campaigns (org_id, id) ON DELETE CASCADE
);

-- +goose StatementBegin
CREATE FUNCTION stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% does not change', TG_TABLE_NAME;
END $$;
-- +goose StatementEnd
CREATE TRIGGER attestations_stay BEFORE UPDATE ON attestations FOR EACH ROW EXECUTE FUNCTION stays();
CREATE TRIGGER dnc_audit_stays BEFORE UPDATE ON dnc_audit FOR EACH ROW EXECUTE FUNCTION stays();
