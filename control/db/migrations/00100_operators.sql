-- +goose Up
-- People who look after organizations in the dashboard.
CREATE TABLE operators (
    id            text PRIMARY KEY,
    email         text NOT NULL UNIQUE, -- in lower case
    password_hash text NOT NULL, -- argon2id, with its salt and costs
    created_at    timestamptz NOT NULL DEFAULT now()
);

-- What they may do where: viewer, operator, owner.
CREATE TABLE operator_roles (
    operator_id text NOT NULL REFERENCES operators ON DELETE CASCADE,
    org_id      text NOT NULL REFERENCES organizations ON DELETE CASCADE,
    role        text NOT NULL CHECK (role IN ('viewer', 'operator', 'owner')),
    PRIMARY KEY (operator_id, org_id)
);
CREATE INDEX operator_roles_by_org ON operator_roles (org_id);

-- Who is signed in. The word that a browser shows is kept nowhere.
CREATE TABLE operator_sessions (
    hash        bytea PRIMARY KEY, -- SHA-256 of it
    operator_id text NOT NULL REFERENCES operators ON DELETE CASCADE,
    org_id      text NOT NULL DEFAULT '', -- looked at last
    said        text NOT NULL DEFAULT '', -- to be shown on the next page, once
    created_at  timestamptz NOT NULL DEFAULT now(),
    seen_at     timestamptz NOT NULL DEFAULT now() -- to the minute
);
CREATE INDEX operator_sessions_by_operator ON operator_sessions (operator_id);
CREATE INDEX operator_sessions_by_seen ON operator_sessions (seen_at);

-- Tries to sign in that were not good, of the last quarter of an hour: of an
-- account, and of an address.
CREATE UNLOGGED TABLE operator_tries (
    of text NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX operator_tries_of ON operator_tries (of, at);

-- What was changed, by whom. Nothing of it changes, and nothing goes.
CREATE TABLE audit_log (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    org_id      text NOT NULL, -- it may be gone
    operator_id text NOT NULL, -- likewise; empty for who signed in with no account
    who         text NOT NULL, -- the address of the operator then
    address     text NOT NULL, -- of the network
    action      text NOT NULL,
    object      text NOT NULL,
    before      jsonb,
    after       jsonb,
    at          timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX audit_log_of_org ON audit_log (org_id, id DESC);
CREATE TRIGGER audit_log_stays BEFORE UPDATE OR DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION stays();
