-- +goose Up
-- Keys that all nodes of one database share and sign with: links of recordings, cursors,
-- tokens of web calls, credentials of the relay, forms. They are sealed when the service
-- starts. The key of the seal, where it is in the database, stays in shared_keys.
CREATE TABLE signing_keys (
    name       text PRIMARY KEY,
    secret     text NOT NULL, -- 32 bytes in hex, sealed
    changed_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO signing_keys (name, secret) SELECT name, encode(value, 'hex') FROM shared_keys WHERE name <> 'seal';
DELETE FROM shared_keys WHERE name <> 'seal';
