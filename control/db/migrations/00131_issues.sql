-- +goose Up
SET LOCAL statement_timeout = 0; -- it takes as long as it takes
-- How many issues of each code the rows of an import have; NULL where they are still to
-- be counted.
ALTER TABLE imports ADD COLUMN codes jsonb;
UPDATE imports SET codes = coalesce((
    SELECT jsonb_object_agg(c.code, c.n) FROM (
        SELECT x ->> 'code' AS code, count(*) AS n FROM import_rows r, json_array_elements(r.issues) x
        WHERE r.import_id = imports.id AND r.issues IS NOT NULL GROUP BY 1) c), '{}');
CREATE INDEX import_rows_with_issues ON import_rows (import_id, n) WHERE issues IS NOT NULL;
