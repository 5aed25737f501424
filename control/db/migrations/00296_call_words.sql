-- +goose Up
-- Words of transcripts, for the search of calls in the dashboard: what caller and agent said, reduced to stems, with a
-- mark of the organization and one of the hour in which the call was created.
CREATE TABLE call_words (
    call_id text PRIMARY KEY REFERENCES calls ON DELETE CASCADE,
    words   tsvector NOT NULL
);
CREATE INDEX call_words_by_word ON call_words USING gin (words) WITH (gin_pending_list_limit = 1024);

-- The queue of calls whose words are to be read. Triggers fill it, so that calls of nodes of the previous release count too.
CREATE TABLE call_word_changes (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    call_id text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

-- +goose StatementBegin
CREATE FUNCTION call_said() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO call_word_changes (call_id) VALUES (NEW.id);
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- A transcript that is stored after the end of its call.
-- +goose StatementBegin
CREATE FUNCTION pack_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO call_word_changes (call_id) SELECT id FROM calls WHERE id = NEW.call_id AND status IN ('ended', 'failed');
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- Words leave with the transcript, whoever deletes it.
-- +goose StatementBegin
CREATE FUNCTION transcript_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM call_words WHERE call_id IN (SELECT call_id FROM gone);
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER calls_words_added AFTER INSERT ON calls FOR EACH ROW
WHEN (NEW.status IN ('ended', 'failed') AND NEW.answered_at IS NOT NULL) EXECUTE FUNCTION call_said();
CREATE TRIGGER calls_words_ended AFTER UPDATE OF status ON calls FOR EACH ROW
WHEN (NEW.status IN ('ended', 'failed') AND OLD.status NOT IN ('ended', 'failed') AND NEW.answered_at IS NOT NULL) EXECUTE FUNCTION call_said();

-- +goose Down
DROP TRIGGER calls_words_added ON calls;
DROP TRIGGER calls_words_ended ON calls;
DROP TABLE call_words, call_word_changes;
DROP FUNCTION call_said, pack_added, transcript_deleted CASCADE;
