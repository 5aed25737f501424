-- +goose Up
-- The person at an identity provider to whom an account belongs. Only issuer and subject together identify a person, because
-- an email address may be given to another one (OpenID Connect Core 1.0, section 5.7). Nodes of the previous release neither
-- read nor write the table: they still find accounts by address.
CREATE TABLE operator_identities (
    operator_id text PRIMARY KEY REFERENCES operators ON DELETE CASCADE,
    issuer      text NOT NULL,
    subject     text NOT NULL,
    bound_at    timestamptz NOT NULL DEFAULT now(),
    UNIQUE (issuer, subject)
);

-- +goose Down
DROP TABLE operator_identities;
