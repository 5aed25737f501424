-- +goose Up
-- Files of rows that no import names: of requests that are at work, that failed,
-- or whose import was deleted. Those that stay here are deleted in time.
CREATE TABLE source_files (
    key text PRIMARY KEY, -- in the bucket
    at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX source_files_by_time ON source_files (at);
-- +goose StatementBegin
CREATE FUNCTION import_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO source_files (key) VALUES (OLD.source_key) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER imports_gone AFTER DELETE ON imports FOR EACH ROW WHEN (OLD.source_key IS NOT NULL) EXECUTE FUNCTION import_gone();
