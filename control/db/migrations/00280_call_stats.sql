-- +goose Up
-- Statistics of ended calls, by hour, for the dashboard.
--
-- The queue of calls whose statistics may have changed. Triggers fill it in the transaction of the change, so that
-- changes by nodes of the previous release count too. A follower takes rows in the transaction that updates the statistics.
CREATE TABLE call_changes (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    call_id text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE call_rollups (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    org_id      text NOT NULL,
    hour        timestamptz NOT NULL, -- in which the calls were created
    agent_id    text NOT NULL, -- empty: of agents and campaigns beyond the limit of an hour
    campaign_id text NOT NULL, -- empty: calls without campaign
    calls       integer NOT NULL,
    outcomes    integer[] NOT NULL, -- number of calls by call_stats.outcome
    judged      integer NOT NULL, -- calls whose analysis says whether they succeeded
    successful  integer NOT NULL,
    talk_ms     bigint NOT NULL,
    costed      integer NOT NULL, -- calls with a known cost
    cost_nano   bigint NOT NULL,
    times       bytea NOT NULL, -- response times: pairs of bucket and count, as varints
    cells       bytea NOT NULL, -- hours of the week of the callees: triples of hour, dialed and answered, as varints
    UNIQUE (org_id, hour, agent_id, campaign_id)
) WITH (fillfactor = 70);

-- What a call adds to its row of call_rollups.
CREATE TABLE call_stats (
    call_id    text PRIMARY KEY,
    rollup_id  bigint NOT NULL,
    outcome    smallint NOT NULL,
    successful boolean, -- null: unknown
    talk_ms    bigint NOT NULL,
    cost_nano  bigint, -- null: unknown
    cell       smallint, -- hour of the callee's week, from Sunday 0:00; null: not dialed
    times      bytea NOT NULL
);
CREATE INDEX call_stats_by_rollup ON call_stats (rollup_id);

-- +goose StatementBegin
CREATE FUNCTION call_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO call_changes (call_id) VALUES (NEW.id);
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION calls_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO call_changes (call_id) SELECT id FROM gone WHERE status IN ('ended', 'failed');
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER calls_stats_added AFTER INSERT ON calls FOR EACH ROW
WHEN (NEW.status IN ('ended', 'failed')) EXECUTE FUNCTION call_changed();
CREATE TRIGGER calls_stats_moved AFTER UPDATE ON calls FOR EACH ROW
WHEN (NEW.status IN ('ended', 'failed') AND
    (OLD.status, OLD.answered_at, OLD.ended_at, OLD.answered_by, OLD.analysis_status, OLD.cost_nano, OLD.erased_at)
    IS DISTINCT FROM (NEW.status, NEW.answered_at, NEW.ended_at, NEW.answered_by, NEW.analysis_status, NEW.cost_nano, NEW.erased_at))
EXECUTE FUNCTION call_changed();
CREATE TRIGGER calls_stats_deleted AFTER DELETE ON calls REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION calls_deleted();

-- +goose Down
DROP TRIGGER calls_stats_added ON calls;
DROP TRIGGER calls_stats_moved ON calls;
DROP TRIGGER calls_stats_deleted ON calls;
DROP FUNCTION call_changed, calls_deleted;
DROP TABLE call_stats, call_rollups, call_changes;
