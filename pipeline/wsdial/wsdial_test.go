package wsdial

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// swallow is a DialFunc whose server reads and never responds.
func swallow(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	go func() {
		for b := make([]byte, 4096); ; {
			if _, err := far.Read(b); err != nil {
				return
			}
		}
	}()
	return near, nil
}

// TestNoAnswer checks that a TLS or WebSocket handshake without a response ends when its context ends or
// after handshakeLimit, and that the error states which.
func TestNoAnswer(t *testing.T) {
	errEnough := errors.New("enough")
	for _, address := range []string{"ws://mute/x", "wss://mute/x"} {
		for name, tt := range map[string]struct {
			bound func(context.Context) (context.Context, context.CancelFunc)
			want  error
			after time.Duration
		}{
			"canceled": {func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(300*time.Millisecond, func() { cancel(errEnough) })
				return ctx, func() { cancel(nil) }
			}, errEnough, 300 * time.Millisecond},
			"a deadline": {func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Second)
			}, context.DeadlineExceeded, time.Second},
			"no deadline": {func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithCancel(ctx)
			}, errHandshake, handshakeLimit},
		} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := tt.bound(t.Context())
				defer cancel()
				began := time.Now()
				if _, err := Open(ctx, "x", address, nil, nil, swallow); !errors.Is(err, tt.want) || time.Since(began) != tt.after {
					t.Errorf("%s, %s: %v after %v", address, name, err, time.Since(began))
				}
			})
		}
	}
}
