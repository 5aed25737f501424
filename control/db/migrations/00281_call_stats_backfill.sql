-- +goose Up
-- +goose NO TRANSACTION
SET lock_timeout = 0;
SET statement_timeout = 0;
-- The calls that ended before the triggers existed, newest first: ids begin with the time. A call may be in the queue twice.
-- +goose StatementBegin
DO $$
DECLARE
    till text := (SELECT max(id) || 'x' FROM calls);
    last text;
BEGIN
    LOOP
        WITH chunk AS (SELECT id, status FROM calls WHERE id < till ORDER BY id DESC LIMIT 5000),
        added AS (INSERT INTO call_changes (call_id) SELECT id FROM chunk WHERE status IN ('ended', 'failed') ORDER BY id DESC)
        SELECT min(id) INTO last FROM chunk;
        EXIT WHEN last IS NULL;
        COMMIT;
        till := last;
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
SELECT 1;
