-- +goose Up
-- A grant lends a trunk to another organization. A limit of 0 is none.
CREATE TABLE grants (
    id               text PRIMARY KEY,
    org_id           text NOT NULL REFERENCES organizations ON DELETE CASCADE, -- that borrows
    trunk_id         text NOT NULL REFERENCES trunks ON DELETE CASCADE,
    caller_numbers   text[] NOT NULL DEFAULT '{}', -- empty: the trunk's
    concurrent_calls integer NOT NULL DEFAULT 0,
    calls_per_minute integer NOT NULL DEFAULT 0,
    created_at       timestamptz NOT NULL DEFAULT now(),
    UNIQUE (trunk_id, org_id),
    UNIQUE (id, org_id, trunk_id)
);
CREATE INDEX grants_by_org ON grants (org_id);

-- A subgroup stands on a trunk of its organization, or on one that was lent to
-- it: then it goes when the grant does.
ALTER TABLE subgroups
    ADD COLUMN grant_id text,
    ADD COLUMN own_org text GENERATED ALWAYS AS (CASE WHEN grant_id IS NULL THEN org_id END) STORED,
    DROP CONSTRAINT subgroups_org_id_trunk_id_fkey,
    DROP CONSTRAINT subgroups_trunk_id_name_key,
    ADD UNIQUE (org_id, trunk_id, name),
    ADD FOREIGN KEY (own_org, trunk_id) REFERENCES trunks (org_id, id) ON DELETE CASCADE,
    ADD FOREIGN KEY (grant_id, org_id, trunk_id) REFERENCES grants (id, org_id, trunk_id) ON DELETE CASCADE;
CREATE INDEX subgroups_by_trunk ON subgroups (trunk_id);
CREATE INDEX subgroups_by_grant ON subgroups (grant_id) WHERE grant_id IS NOT NULL;

UPDATE organizations SET settings = settings - 'grants' - 'granted_trunks';

-- The calls of a subgroup are numbered as they are registered, so that how many
-- there are is a difference of two numbers. Whoever registers one has the row.
CREATE TABLE subgroup_counts (
    subgroup_id text PRIMARY KEY REFERENCES subgroups ON DELETE CASCADE,
    registered  bigint NOT NULL DEFAULT 0,
    last_at     timestamptz NOT NULL DEFAULT '-infinity' -- created_at of the last call
);
ALTER TABLE calls
    ADD COLUMN route_n bigint,                                        -- its number in its subgroup
    ADD COLUMN cost_per_minute double precision NOT NULL DEFAULT 0; -- as it was when the call was registered
UPDATE calls c SET route_n = x.n FROM (
    SELECT id, row_number() OVER (PARTITION BY route_id ORDER BY created_at, id) - count(*) OVER (PARTITION BY route_id) AS n
    FROM calls WHERE status IN ('queued', 'ringing', 'ongoing') OR created_at > now() - interval '1 hour'
) x WHERE c.id = x.id;
DROP INDEX calls_alive;
CREATE INDEX calls_alive ON calls (route_id, route_n) WHERE status IN ('queued', 'ringing', 'ongoing');

-- What waits too long is found without looking at what is over.
CREATE INDEX attempts_waiting ON attempts (created_at) WHERE state = 'scheduled';
DROP INDEX attempts_leases;
CREATE INDEX attempts_leases ON attempts (lease_until) WHERE state IN ('claimed', 'intent', 'sent', 'ringing', 'answered');
CREATE INDEX attempts_owned ON attempts (owner) WHERE state IN ('claimed', 'intent', 'sent', 'ringing', 'answered');
DROP INDEX attempts_claimed;
CREATE INDEX attempts_claimed ON attempts (claimed_at) WHERE claimed_at IS NOT NULL;

-- A call may have a second leg, to whom its party is handed over.
ALTER TABLE attempts
    ADD COLUMN leg text NOT NULL DEFAULT 'callee', -- callee, transfer
    ADD COLUMN number text NOT NULL DEFAULT '',    -- digits, of a transfer
    DROP CONSTRAINT attempts_call_id_attempt_no_key,
    ADD UNIQUE (call_id, leg, attempt_no);
DROP INDEX attempts_one_alive;
CREATE UNIQUE INDEX attempts_one_alive ON attempts (call_id, leg) WHERE state IN ('claimed', 'intent', 'sent', 'ringing', 'answered');
