-- +goose Up
-- What operators loaded: registries, organizations' own lists, results about
-- reassigned numbers. Nothing of it is changed.
CREATE TABLE list_loads (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name          text NOT NULL, -- of a registry; org_suppression; reassigned
    org_id        text NOT NULL DEFAULT '', -- empty for a registry; it may be gone
    registry_id   bigint, -- of the copy that came of it
    files         text[] NOT NULL,
    sha256        text[] NOT NULL, -- of the files
    replaced      boolean NOT NULL,
    added         bigint NOT NULL,
    deleted       bigint NOT NULL,
    numbers       bigint NOT NULL, -- on the list then
    downloaded_at timestamptz NOT NULL,
    loaded_by     text NOT NULL, -- the account of the operating system
    at            timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX list_loads_by_name ON list_loads (name, org_id, id);
CREATE TRIGGER list_loads_stay BEFORE UPDATE OR DELETE ON list_loads FOR EACH ROW EXECUTE FUNCTION stays();

-- Whether numbers were reassigned after somebody consented, as the FCC's database
-- says: yes, no, no data.
CREATE TABLE reassigned_numbers (
    org_id     text NOT NULL REFERENCES organizations ON DELETE CASCADE,
    number     text NOT NULL, -- E.164
    consent_on date NOT NULL, -- that was asked about
    result     text NOT NULL,
    at         timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, number, consent_on)
);

-- Rules of markets that operators installed beside those of the program. They do
-- not change: another version is another row.
CREATE TABLE market_packages (
    code         text NOT NULL,
    version      text NOT NULL,
    files        jsonb NOT NULL, -- by name
    sha256       text NOT NULL,
    installed_by text NOT NULL,
    installed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (code, version)
);
CREATE TRIGGER market_packages_stay BEFORE UPDATE ON market_packages FOR EACH ROW EXECUTE FUNCTION stays();

-- The version of the rules that a list was read by.
ALTER TABLE imports ADD COLUMN rules text NOT NULL DEFAULT '';

-- Whether a campaign's calls begin with what the law wants said; NULL is as the
-- organization has it.
ALTER TABLE campaigns ADD COLUMN disclosures boolean;
-- What a call begins with, before the greeting.
ALTER TABLE calls ADD COLUMN disclosure text NOT NULL DEFAULT '';
