-- +goose Up
-- A dump that is restored on the server that it came from has the timeline of that server. Its tables are new, though:
-- the number of one of them is part of the database's identity.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION database_timeline() RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    cluster text := '';
    line text := '';
BEGIN
    BEGIN
        SELECT system_identifier::text INTO cluster FROM pg_control_system();
    EXCEPTION WHEN OTHERS THEN NULL;
    END;
    BEGIN
        line := substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
    EXCEPTION WHEN OTHERS THEN NULL;
    END;
    RETURN cluster || ':' || line || ':' || 'database_epochs'::regclass::oid;
END $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION database_timeline() RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    cluster text := '';
    line text := '';
BEGIN
    BEGIN
        SELECT system_identifier::text INTO cluster FROM pg_control_system();
    EXCEPTION WHEN OTHERS THEN NULL;
    END;
    BEGIN
        line := substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
    EXCEPTION WHEN OTHERS THEN NULL;
    END;
    RETURN cluster || ':' || line;
END $$;
-- +goose StatementEnd
