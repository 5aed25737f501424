-- +goose Up
-- Who answered a call is answered_by; this is how that is known: confidence,
-- evidence, amd_ms. NULL where nobody looked.
ALTER TABLE calls ADD COLUMN amd jsonb;
