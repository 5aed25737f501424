-- +goose Up
-- What operators add to calls: tags, a score and notes.
CREATE TABLE call_tags (
    call_id    text NOT NULL REFERENCES calls ON DELETE CASCADE,
    tag        text NOT NULL,
    org_id     text NOT NULL,
    author     text NOT NULL, -- email
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (call_id, tag)
);
CREATE INDEX call_tags_by_tag ON call_tags (org_id, tag, call_id);

CREATE TABLE call_scores (
    call_id    text PRIMARY KEY REFERENCES calls ON DELETE CASCADE,
    score      smallint NOT NULL CHECK (score BETWEEN 1 AND 5),
    org_id     text NOT NULL,
    author     text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX call_scores_by_score ON call_scores (org_id, score, call_id);

CREATE TABLE call_notes (
    id         text PRIMARY KEY,
    call_id    text NOT NULL REFERENCES calls ON DELETE CASCADE,
    note       text NOT NULL,
    author     text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX call_notes_by_call ON call_notes (call_id, created_at);

-- They go with the content of an erased call, whoever erases it.
-- +goose StatementBegin
CREATE FUNCTION call_erased() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM call_tags WHERE call_id = NEW.id;
    DELETE FROM call_scores WHERE call_id = NEW.id;
    DELETE FROM call_notes WHERE call_id = NEW.id;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER calls_marks_erased AFTER UPDATE OF erased_at ON calls FOR EACH ROW
WHEN (NEW.erased_at IS NOT NULL AND OLD.erased_at IS NULL) EXECUTE FUNCTION call_erased();

-- +goose Down
DROP TRIGGER calls_marks_erased ON calls;
DROP FUNCTION call_erased;
DROP TABLE call_tags, call_scores, call_notes;
