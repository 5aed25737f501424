package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Sender sends due deliveries. It serves many endpoints in parallel, so that a slow endpoint does not delay the others.
// Only one node at a time delivers to an endpoint.
type Sender struct {
	Pool *pgxpool.Pool
	// Owner identifies this process.
	Owner string
	// AllowInsecure permits endpoints with private addresses.
	AllowInsecure bool
	// Endpoints is the maximum number of endpoints served at the same time; 0 means 512. PerEndpoint is the maximum
	// number of concurrent deliveries to one endpoint; 0 means 8.
	Endpoints, PerEndpoint int
	// Poll is the interval of checks for due deliveries; 0 means 1 s. Wake starts a check at once.
	Poll time.Duration
	Wake <-chan struct{}
	// Now returns the current time; nil means time.Now. Random returns a number from 0 to 1; nil means rand.Float64.
	Now    func() time.Time
	Random func() float64
	// Pack reports whether the payloads of delivered deliveries are packed; nil means that they are not.
	Pack func() bool
	// Observe receives each attempt after its result is stored. It may be nil.
	Observe func(Attempt)
	Log     *slog.Logger

	once   sync.Once
	client *http.Client
}

// lease is the time for which an endpoint stays leased by a node that no longer responds. It is longer than an attempt.
const lease = time.Minute

// Run delivers until ctx ends. It returns after the last attempt has ended.
func (s *Sender) Run(ctx context.Context) {
	var drains sync.WaitGroup
	defer drains.Wait()
	free := make(chan struct{}, s.endpoints())
	poll := s.Poll
	if poll == 0 {
		poll = time.Second
	}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		for ctx.Err() == nil {
			select {
			case free <- struct{}{}:
			case <-ctx.Done():
				continue
			}
			e, err := s.take(ctx)
			if err != nil && ctx.Err() == nil {
				s.log().WarnContext(ctx, "failed to deliver webhooks", "err", err)
			}
			if e == nil {
				<-free
				break
			}
			drains.Go(func() {
				defer func() { <-free }()
				s.drain(ctx, *e)
			})
		}
		select {
		case <-ctx.Done():
			return
		case <-s.Wake:
		case <-tick.C:
		}
	}
}

// DeliverDue sends all deliveries that are due now, and then returns. It serves endpoints in parallel.
func (s *Sender) DeliverDue(ctx context.Context) error {
	var drains sync.WaitGroup
	defer drains.Wait()
	for {
		e, err := s.take(ctx)
		if err != nil || e == nil {
			return err
		}
		drains.Go(func() { s.drain(ctx, *e) })
	}
}

// dueSQL selects the deliveries d that are due at time $2. call_analyzed is due only after call_ended was delivered
// or has failed twice.
const dueSQL = `d.state = 'pending' AND d.next_at <= $2 AND (d.type <> 'call_analyzed' OR NOT EXISTS (
	SELECT FROM webhook_deliveries o WHERE o.endpoint_id = d.endpoint_id AND o.call_id = d.call_id
	AND o.type = 'call_ended' AND o.state = 'pending' AND o.tries < 2))`

// take leases the endpoint with the oldest due delivery. It returns nil if no delivery is due.
func (s *Sender) take(ctx context.Context) (*Endpoint, error) {
	var e Endpoint
	err := s.Pool.QueryRow(ctx, `
		UPDATE webhook_endpoints SET owner = $1, lease_until = $3
		WHERE id = (
			SELECT e.id FROM webhook_endpoints e
			CROSS JOIN LATERAL (SELECT d.next_at FROM webhook_deliveries d WHERE d.endpoint_id = e.id AND `+dueSQL+` ORDER BY d.next_at LIMIT 1) w
			WHERE e.disabled_at IS NULL AND (e.lease_until IS NULL OR e.lease_until <= $2)
			  AND (e.throttled_until IS NULL OR e.throttled_until <= $2)
			ORDER BY w.next_at LIMIT 1
			FOR UPDATE OF e SKIP LOCKED)
		RETURNING id, url, secret, previous_secret`, s.Owner, s.now(), s.now().Add(lease)).Scan(&e.ID, &e.URL, &e.Secret, &e.Previous)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("webhook endpoints: %w", err)
	}
	return &e, nil
}

func (s *Sender) endpoints() int { return cmp.Or(s.Endpoints, 512) }

func (s *Sender) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

func (s *Sender) random() float64 {
	if s.Random == nil {
		return rand.Float64() //nolint:gosec // to spread retries
	}
	return s.Random()
}

func (s *Sender) log() *slog.Logger { return cmp.Or(s.Log, slog.New(slog.DiscardHandler)) }
