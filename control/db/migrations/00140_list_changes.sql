-- +goose Up
-- How often the own list of an organization was changed: the sum of n. Who changes it
-- appends here in the same transaction, so nobody waits for anybody; it is folded now
-- and then.
CREATE TABLE suppression_changes (
    org_id text NOT NULL,
    n      bigint NOT NULL
);
CREATE INDEX suppression_changes_by_org ON suppression_changes (org_id);
ALTER TABLE suppression_changes SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.2);

-- +goose StatementBegin
CREATE FUNCTION suppressions_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO suppression_changes (org_id, n)
    SELECT c.org_id, 1 FROM (SELECT DISTINCT org_id FROM changed) c
    WHERE EXISTS (SELECT FROM organizations o WHERE o.id = c.org_id); -- else it goes, and its list with it
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION suppressions_emptied() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO suppression_changes (org_id, n) SELECT id, 1 FROM organizations;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER suppressions_came AFTER INSERT ON suppressions REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION suppressions_changed();
CREATE TRIGGER suppressions_went AFTER DELETE ON suppressions REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION suppressions_changed();
CREATE TRIGGER suppressions_moved AFTER UPDATE ON suppressions REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION suppressions_changed();
CREATE TRIGGER suppressions_truncated AFTER TRUNCATE ON suppressions FOR EACH STATEMENT EXECUTE FUNCTION suppressions_emptied();
