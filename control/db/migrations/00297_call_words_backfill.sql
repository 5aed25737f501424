-- +goose Up
-- +goose NO TRANSACTION
SET lock_timeout = 0;
SET statement_timeout = 0;
-- Each trigger has a transaction of its own, so that none waits for a second table. After them the transcripts of ended
-- calls are queued, newest first: ids begin with the time. A call may be in the queue twice.
-- +goose StatementBegin
DO $$
DECLARE
    till text;
    last text;
BEGIN
    CREATE OR REPLACE TRIGGER call_packs_added AFTER INSERT ON call_packs FOR EACH ROW EXECUTE FUNCTION pack_added();
    CREATE OR REPLACE TRIGGER call_packs_deleted AFTER DELETE ON call_packs REFERENCING OLD TABLE AS gone
        FOR EACH STATEMENT EXECUTE FUNCTION transcript_deleted();
    COMMIT;
    CREATE OR REPLACE TRIGGER call_lines_deleted AFTER DELETE ON call_lines REFERENCING OLD TABLE AS gone
        FOR EACH STATEMENT EXECUTE FUNCTION transcript_deleted();
    COMMIT;
    till := (SELECT max(id) || 'x' FROM calls);
    LOOP
        WITH chunk AS (SELECT id, status, answered_at FROM calls WHERE id < till ORDER BY id DESC LIMIT 5000),
        added AS (INSERT INTO call_word_changes (call_id)
            SELECT id FROM chunk WHERE status IN ('ended', 'failed') AND answered_at IS NOT NULL ORDER BY id DESC)
        SELECT min(id) INTO last FROM chunk;
        EXIT WHEN last IS NULL;
        COMMIT;
        till := last;
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER call_packs_added ON call_packs;
DROP TRIGGER call_packs_deleted ON call_packs;
DROP TRIGGER call_lines_deleted ON call_lines;
