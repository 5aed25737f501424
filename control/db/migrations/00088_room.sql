-- +goose Up
-- Rows that change while a call is dialled have room to do so in their page, so
-- that what no index holds is changed without touching the indexes.
ALTER TABLE calls SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE attempts SET (fillfactor = 70);
ALTER TABLE events SET (fillfactor = 70);

-- +goose Down
ALTER TABLE calls RESET (fillfactor, autovacuum_vacuum_scale_factor);
ALTER TABLE attempts RESET (fillfactor);
ALTER TABLE events RESET (fillfactor);
