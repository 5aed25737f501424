-- +goose Up
-- The payloads of delivered deliveries of a call to an endpoint, compressed, in the row that was delivered last. The other
-- rows name it in packed_in. The column payload of all of them is empty.
ALTER TABLE webhook_deliveries ADD COLUMN packed bytea, ADD COLUMN packed_in text,
    ALTER COLUMN packed SET STORAGE EXTERNAL; -- it is compressed already

-- +goose Down
ALTER TABLE webhook_deliveries DROP COLUMN packed, DROP COLUMN packed_in;
