-- +goose Up
-- One-time codes of operators who sign in with a password (RFC 6238). The key is encrypted; empty means none.
ALTER TABLE operators ADD COLUMN totp_secret text NOT NULL DEFAULT '';
ALTER TABLE operators ADD COLUMN totp_step bigint NOT NULL DEFAULT 0; -- of the last code; earlier ones are refused

CREATE TABLE operator_recovery_codes (
    operator_id text NOT NULL REFERENCES operators ON DELETE CASCADE,
    hash        bytea NOT NULL, -- SHA-256; the code is random
    PRIMARY KEY (operator_id, hash)
);

-- +goose Down
-- Without codes the accounts would be protected by less than their owners chose.
DELETE FROM operator_sessions WHERE operator_id IN (SELECT id FROM operators WHERE totp_secret <> '');
ALTER TABLE operators DROP COLUMN totp_secret, DROP COLUMN totp_step;
DROP TABLE operator_recovery_codes;
