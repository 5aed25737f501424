-- +goose Up
-- What a key may do (null: everything), and when it ends (null: never).
ALTER TABLE api_keys ADD COLUMN scopes text[] CHECK (cardinality(scopes) > 0);
ALTER TABLE api_keys ADD COLUMN expires_at timestamptz;

-- +goose Down
-- Narrow keys must not become able to do everything.
UPDATE api_keys SET revoked_at = coalesce(revoked_at, now()) WHERE scopes IS NOT NULL OR expires_at IS NOT NULL;
ALTER TABLE api_keys DROP COLUMN scopes, DROP COLUMN expires_at;
