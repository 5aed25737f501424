package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/safedial"
)

// An endpoint is disabled after deadInARow dead deliveries in a row, if no delivery succeeded within noSuccessIn.
const (
	deadInARow  = 10
	noSuccessIn = 7 * 24 * time.Hour
)

type delivery struct {
	id      string
	callID  string
	kind    string // one of Types
	payload []byte
	tries   int
}

// Attempt is one attempt to send a delivery.
type Attempt struct {
	DeliveryID, EndpointID, CallID string

	Type         string // one of Types
	Number       int    // counted from 1
	Status       int    // of the response; 0 if there was none
	State        string // of the delivery after the attempt: "delivered", "pending" (more attempts follow) or "dead"
	Began, Ended time.Time
}

// attempt tries a delivery once and records the result.
func (s *Sender) attempt(ctx context.Context, e Endpoint, d delivery) attemptResult {
	a := Attempt{DeliveryID: d.id, EndpointID: e.ID, CallID: d.callID, Type: d.kind, Number: d.tries + 1, Began: s.now()}
	status, asked, fault := s.send(ctx, e, d)
	a.Status, a.Ended = status, s.now()
	if stopping := ctx.Err() != nil; stopping && status == 0 {
		return attemptResult{id: d.id} // a shutdown interrupted the attempt, so it does not count
	}
	v := judge(d.tries+1, status, asked, s.random())
	if !v.delivered {
		s.log().InfoContext(ctx, "webhook delivery failed", "endpoint", e.ID, "delivery", d.id, "try", d.tries+1, "status", status, "err", fault)
	}
	a.State = v.state()
	err := s.recordAttempt(context.WithoutCancel(ctx), e, d, v, status, fault)
	if err == nil && s.Observe != nil {
		s.Observe(a)
	}
	return attemptResult{d.id, v.delivered, err}
}

// send sends a delivery. If there is no response, status is 0 and fault says why.
func (s *Sender) send(ctx context.Context, e Endpoint, d delivery) (status int, asked time.Duration, fault string) {
	keys, err := e.keys()
	if err == nil {
		err = CheckURL(e.URL, s.AllowInsecure)
	}
	if err != nil {
		return 0, 0, err.Error()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, bytes.NewReader(d.payload))
	if err != nil {
		return 0, 0, "the url cannot be used"
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "Parley-Webhooks/1")
	keys.sign(r.Header, d.id, s.now(), d.payload)
	s.once.Do(func() { s.client = safedial.Rules{Anywhere: s.AllowInsecure, Timeout: timeout}.Client() })
	resp, err := s.client.Do(r)
	if err != nil {
		return 0, 0, reason(err)
	}
	defer resp.Body.Close()
	// A connection is reused only if the body of its response was read.
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	return resp.StatusCode, retryAfter(resp.Header, s.now()), ""
}

// reason says why a request got no response. It names only the host and the port of the URL, which may contain a token. It
// names neither the addresses of the host nor the resolver.
func reason(err error) string {
	host, at := "the host", "the host"
	if request, ok := errors.AsType[*url.Error](err); ok {
		if u, fault := url.Parse(request.URL); fault == nil && u.Hostname() != "" {
			host = u.Hostname()
			at = net.JoinHostPort(host, cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]))
		}
		err = request.Err
	}
	text := []rune(pipeline.Clean(explain(err, host, at))) // removes characters that the database rejects
	return string(text[:min(len(text), 200)])
}

// explain returns the text of reason. at is the host with its port.
func explain(err error, host, at string) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "DNS has no address for " + host
		}
		return "DNS lookup of " + host + " failed"
	}
	if certificate, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "TLS certificate of " + host + " not valid: " + strings.TrimPrefix(certificate.Err.Error(), "x509: ")
	}
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return "connection to " + at + " failed: " + number.Error()
	}
	op, opened := errors.AsType[*net.OpError](err)
	late, timed := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, safedial.ErrNotPublic):
		return "the address of " + host + " is not public"
	case timed && late.Timeout() && !opened && errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no response from %s within %.0f s", at, timeout.Seconds())
	case timed && late.Timeout():
		return fmt.Sprintf("no connection to %s within %.0f s", at, safedial.ConnectTimeout.Seconds())
	case errors.Is(err, http.ErrSchemeMismatch):
		return at + " responds without TLS"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return at + " closed the connection without a response"
	case opened:
		return "connection to " + at + " failed: " + op.Err.Error()
	}
	return err.Error()
}

func (s *Sender) recordAttempt(ctx context.Context, e Endpoint, d delivery, v verdict, status int, fault string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	now := s.now()
	var disabled string
	err := db.Tx(ctx, s.Pool, func(tx pgx.Tx) error {
		// Lock the endpoint before the delivery, as Replay and Remove do. The same order everywhere prevents deadlocks.
		var err error
		if disabled, err = recordEndpoint(ctx, tx, e.ID, v, now); err != nil {
			return err
		}
		_, err = db.Exec(ctx, tx, "webhook delivery", `
			UPDATE webhook_deliveries SET state = $2, tries = tries + 1, next_at = $3, last_status = nullif($4, 0), last_error = $5,
				settled_at = CASE WHEN $2 = 'pending' THEN NULL ELSE $6::timestamptz END
			WHERE id = $1`, d.id, v.state(), now.Add(v.wait), status, fault, now)
		if err == nil && v.delivered && s.Pack != nil && s.Pack() {
			err = pack(ctx, tx, e.ID, d)
		}
		return err
	})
	if err != nil {
		return err
	}
	if disabled != "" {
		s.log().WarnContext(ctx, "webhook endpoint disabled", "endpoint", e.ID, "reason", disabled)
	}
	return nil
}

// recordEndpoint updates the endpoint after an attempt. It returns the reason if the attempt disabled the endpoint, and
// "" otherwise.
func recordEndpoint(ctx context.Context, tx pgx.Tx, id string, v verdict, now time.Time) (reason string, err error) {
	_, err = tx.Exec(ctx, `
		UPDATE webhook_endpoints SET
			last_success_at = CASE WHEN $2 THEN $5::timestamptz ELSE last_success_at END,
			failed_in_a_row = CASE WHEN $2 THEN 0 WHEN $3 THEN failed_in_a_row + 1 ELSE failed_in_a_row END,
			throttled_until = CASE WHEN $4::interval > '0' THEN greatest(throttled_until, $5::timestamptz + $4::interval) ELSE throttled_until END
		WHERE id = $1`, id, v.delivered, v.dead, v.throttle, now)
	if err != nil {
		return "", fmt.Errorf("webhook endpoint: %w", err)
	}
	if !v.gone && !v.dead {
		return "", nil
	}
	err = tx.QueryRow(ctx, `
		UPDATE webhook_endpoints SET disabled_at = $3, disabled_reason = CASE WHEN $2 THEN 'the endpoint answered 410 Gone' ELSE 'no delivery succeeded in 7 days' END
		WHERE id = $1 AND disabled_at IS NULL
		  AND ($2 OR failed_in_a_row >= $4 AND coalesce(last_success_at, created_at) < $3::timestamptz - $5::interval)
		RETURNING disabled_reason`, id, v.gone, now, deadInARow, noSuccessIn).Scan(&reason)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", fmt.Errorf("webhook endpoint: %w", err)
	}
	return reason, nil
}
