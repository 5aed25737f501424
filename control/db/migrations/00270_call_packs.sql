-- +goose Up
-- The lines and turns of an ended call, compressed. A call has either rows in call_lines and call_turns, or a pack.
CREATE TABLE call_packs (
    call_id text PRIMARY KEY REFERENCES calls ON DELETE CASCADE,
    pack    bytea NOT NULL
);
ALTER TABLE call_packs ALTER COLUMN pack SET STORAGE EXTERNAL; -- it is compressed already

-- +goose Down
DROP TABLE call_packs;
