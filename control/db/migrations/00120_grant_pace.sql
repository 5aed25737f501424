-- +goose Up
-- Calls of all subgroups of a grant share its pace.
ALTER TABLE grants ADD COLUMN next_dial_at timestamptz NOT NULL DEFAULT now();

-- +goose Down
ALTER TABLE grants DROP COLUMN next_dial_at;
