-- +goose Up
-- Endpoints of providers from the operator's file.
CREATE TABLE provider_endpoints (
	org_id         text REFERENCES organizations (id) ON DELETE CASCADE, -- null for the operator's own
	name           text NOT NULL,
	settings       jsonb NOT NULL,
	secret         text NOT NULL, -- the key, sealed
	header_secrets text NOT NULL  -- the headers as JSON, sealed
);
CREATE UNIQUE INDEX provider_endpoints_by_name ON provider_endpoints (coalesce(org_id, ''), name);
CREATE INDEX provider_endpoints_by_org ON provider_endpoints (org_id);
