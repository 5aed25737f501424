-- +goose Up
-- A node that can read packs sets it to seen_at. A node of an older release leaves it behind seen_at.
ALTER TABLE nodes ADD COLUMN packs_at timestamptz;

-- +goose Down
ALTER TABLE nodes DROP COLUMN packs_at;
