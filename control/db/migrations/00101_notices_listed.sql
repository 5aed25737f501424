-- +goose Up
-- Operators page through the notices of an endpoint, and through those that were
-- given up; ids sort by time.
CREATE INDEX webhook_deliveries_listed ON webhook_deliveries (endpoint_id, id);
CREATE INDEX webhook_deliveries_dead ON webhook_deliveries (endpoint_id, id) WHERE state = 'dead';
