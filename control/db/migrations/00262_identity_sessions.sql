-- +goose Up
-- Sessions that an identity provider started. They end earlier.
ALTER TABLE operator_sessions ADD COLUMN identity boolean NOT NULL DEFAULT false;

-- +goose Down
DELETE FROM operator_sessions WHERE identity;
ALTER TABLE operator_sessions DROP COLUMN identity;
