-- +goose Up
-- Results of the last probes of an agent's engines, for launches on all nodes. Rows expire
-- after an hour and are deleted after a day.
CREATE TABLE provider_checks (
	org_id  text NOT NULL,
	engines bytea NOT NULL, -- SHA-256 of the engines with their options
	report  jsonb NOT NULL,
	at      timestamptz NOT NULL,
	PRIMARY KEY (org_id, engines)
);
