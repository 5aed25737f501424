-- +goose Up
-- The database's last sign of life, and for an epoch that began after a return to an earlier state: the time of
-- that state.
ALTER TABLE database_epochs ADD COLUMN seen_at timestamptz, ADD COLUMN behind timestamptz;

-- The next migration changes the name of the timeline. The epoch must go on, so it has a row of each name.
-- policy: allow insert, because the table has a row per timeline
INSERT INTO database_epochs (timeline, epoch, since, expected, opened_at, missing, released_at, released_by)
SELECT timeline || ':' || 'database_epochs'::regclass::oid, epoch, since, expected, opened_at, missing, released_at, released_by
FROM database_epochs WHERE timeline = database_timeline() ON CONFLICT (timeline) DO NOTHING;

-- +goose Down
DELETE FROM database_epochs WHERE timeline LIKE '%:' || 'database_epochs'::regclass::oid;
ALTER TABLE database_epochs DROP COLUMN seen_at, DROP COLUMN behind;
