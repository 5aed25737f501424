package webhook

import (
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

// A Sender delivers what is due. Endpoints are drained beside each other, so
// that a slow one keeps nobody else waiting; each by one node at a time.
type Sender struct {
	Pool *pgxpool.Pool
	// Owner names this process.
	Owner string
	// AllowInsecure lets endpoints be inside the own network.
	AllowInsecure bool
	// Endpoints is how many are drained at a time, 0 means 512; Beside how many
	// notices are on their way to one endpoint at a time, 0 means 8.
	Endpoints, Beside int
	// Poll is how often work is looked for without being woken; 0 means 1 s.
	Poll time.Duration
	Wake <-chan struct{}
	// Now and Dice are the clock and chance, 0 to 1; nil are the real ones.
	Now  func() time.Time
	Dice func() float64
	// Observe, where set, is told what became of each attempt: delivered, pending
	// where it is to be made again, or dead.
	Observe func(state string)
	Log     *slog.Logger

	once   sync.Once
	client *http.Client
}

// lease is how long an endpoint belongs to a node without a sign of life: more
// than one attempt takes.
const lease = time.Minute

// Run delivers until ctx ends, and returns when all is over.
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
				s.log().WarnContext(ctx, "webhooks are not delivered", "err", err)
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

// Pass delivers what is due now, endpoints beside each other, and returns when
// it is done.
func (s *Sender) Pass(ctx context.Context) error {
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

// due is the condition of deliveries d that may be made at the time $2: what came
// of a call is not told before its end was, or that failed twice.
const due = `d.state = 'pending' AND d.next_at <= $2 AND (d.type <> 'call_analyzed' OR NOT EXISTS (
	SELECT FROM webhook_deliveries o WHERE o.endpoint_id = d.endpoint_id AND o.call_id = d.call_id
	AND o.type = 'call_ended' AND o.state = 'pending' AND o.tries < 2))`

// take leases the endpoint that waits longest, nil where none has work.
func (s *Sender) take(ctx context.Context) (*Endpoint, error) {
	var e Endpoint
	err := s.Pool.QueryRow(ctx, `
		UPDATE webhook_endpoints SET owner = $1, lease_until = $3
		WHERE id = (
			SELECT e.id FROM webhook_endpoints e
			CROSS JOIN LATERAL (SELECT d.next_at FROM webhook_deliveries d WHERE d.endpoint_id = e.id AND `+due+` ORDER BY d.next_at LIMIT 1) w
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

func (s *Sender) endpoints() int {
	if s.Endpoints == 0 {
		return 512
	}
	return s.Endpoints
}

func (s *Sender) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

func (s *Sender) dice() float64 {
	if s.Dice == nil {
		return rand.Float64() //nolint:gosec // to spread retries
	}
	return s.Dice()
}

func (s *Sender) log() *slog.Logger {
	if s.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Log
}
