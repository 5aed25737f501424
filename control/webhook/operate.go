package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// ErrUnknown is returned if the endpoint or delivery does not exist.
var ErrUnknown = errors.New("unknown")

// EndpointStatus is the state of an endpoint.
type EndpointStatus struct {
	ID, OrgName, URL          string
	Events                    []string
	Waiting, Dead             int // numbers of deliveries
	LastSuccessAt, DisabledAt *time.Time
	DisabledReason            string
}

// Host returns the URL without path and query, which may contain secrets.
func (s EndpointStatus) Host() string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return "?"
	}
	return u.Scheme + "://" + u.Host + "/…"
}

// List returns the endpoints of the named organization, or of all organizations if the name is empty.
func List(ctx context.Context, q db.Querier, orgName string) ([]EndpointStatus, error) {
	return db.Collect(ctx, q, "webhook endpoints", pgx.RowToStructByPos[EndpointStatus], `
		SELECT e.id, o.name, e.url, e.events,
			(SELECT count(*) FROM webhook_deliveries d WHERE d.endpoint_id = e.id AND d.state = 'pending'),
			(SELECT count(*) FROM webhook_deliveries d WHERE d.endpoint_id = e.id AND d.state = 'dead'),
			e.last_success_at, e.disabled_at, e.disabled_reason
		FROM webhook_endpoints e JOIN organizations o ON o.id = e.org_id
		WHERE $1 = '' OR o.name = $1 ORDER BY o.name, e.id`, orgName)
}

// DeadLetter is a dead delivery. It is not tried again.
type DeadLetter struct {
	ID, EndpointID, Type, CallID string
	Tries                        int
	At                           *time.Time
	Status                       int    // HTTP status of the last response; 0 if there was none
	Fault                        string // why there was no response
}

// DeadLetters returns the newest 1,000 dead deliveries of the named organization, or of all organizations if the name
// is empty.
func DeadLetters(ctx context.Context, q db.Querier, orgName string) ([]DeadLetter, error) {
	return db.Collect(ctx, q, "dead letters", pgx.RowToStructByPos[DeadLetter], `
		SELECT d.id, d.endpoint_id, d.type, d.call_id, d.tries, d.settled_at, coalesce(d.last_status, 0), d.last_error
		FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id JOIN organizations o ON o.id = e.org_id
		WHERE d.state = 'dead' AND ($1 = '' OR o.name = $1) ORDER BY d.settled_at DESC, d.id LIMIT 1000`, orgName)
}

// Replay makes deliveries due now and returns their number. id is a delivery in any state, or an endpoint. For an
// endpoint, Replay selects all its dead deliveries. The deliveries keep their ids and get as many tries as new
// deliveries. If the endpoint is disabled, Replay enables it if enable is set, and fails otherwise.
func Replay(ctx context.Context, pool *pgxpool.Pool, id string, enable bool) (int, error) {
	var n int64
	err := db.Tx(ctx, pool, func(tx pgx.Tx) error {
		var endpoint, reason string
		var disabled bool
		err := tx.QueryRow(ctx, `
			SELECT e.id, e.disabled_at IS NOT NULL, e.disabled_reason FROM webhook_endpoints e
			WHERE e.id = $1 OR e.id = (SELECT endpoint_id FROM webhook_deliveries WHERE id = $1) FOR UPDATE`, id).Scan(&endpoint, &disabled, &reason)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return ErrUnknown
		case err != nil:
			return err
		case disabled && !enable:
			return fmt.Errorf("its endpoint is disabled (%s); enable the endpoint too", reason)
		}
		_, err = tx.Exec(ctx, `
			UPDATE webhook_endpoints SET disabled_at = NULL, disabled_reason = '', failed_in_a_row = 0, throttled_until = NULL WHERE id = $1`, endpoint)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			UPDATE webhook_deliveries SET state = 'pending', tries = 0, next_at = clock_timestamp(), settled_at = NULL
			WHERE id = $1 OR endpoint_id = $1 AND state = 'dead'`, id)
		if err != nil {
			return err
		}
		n = tag.RowsAffected()
		_, err = tx.Exec(ctx, "SELECT pg_notify($1, '')", Channel)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("replay %s: %w", id, err)
	}
	return int(n), nil
}

const typeTest = "test"

// Test sends a test delivery to an endpoint, even if the endpoint is disabled. It returns the HTTP status and the
// duration.
func (s *Sender) Test(ctx context.Context, id string) (status int, took time.Duration, err error) {
	e := Endpoint{ID: id}
	err = s.Pool.QueryRow(ctx, "SELECT org_id, url, secret, previous_secret FROM webhook_endpoints WHERE id = $1", id).
		Scan(&e.OrgID, &e.URL, &e.Secret, &e.Previous)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrUnknown
	}
	if err != nil {
		return 0, 0, fmt.Errorf("webhook endpoint %s: %w", id, err)
	}
	began := s.now()
	event := control.NewID("evt_", began)
	body, err := json.Marshal(map[string]any{
		"type": typeTest, "event": typeTest, "event_id": event, "timestamp": began.Unix(), "organization_id": e.OrgID,
		"call_id": nil, "metadata": map[string]any{}, "call": nil,
	})
	if err != nil {
		return 0, 0, err
	}
	status, _, fault := s.send(ctx, e, delivery{id: event, payload: body})
	if status == 0 {
		return 0, 0, fmt.Errorf("webhook endpoint %s: %s", id, fault)
	}
	return status, s.now().Sub(began), nil
}
