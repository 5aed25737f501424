package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/media"
)

// keyLength is the length of a signing key in bytes.
const keyLength = 32

func newKey() media.Secret {
	fresh := make([]byte, keyLength)
	_, _ = rand.Read(fresh) // never fails since Go 1.24
	return media.Secret(hex.EncodeToString(fresh))
}

// SharedKey returns the 32-byte signing key of a name, shared by all nodes and created at its first use.
func SharedKey(ctx context.Context, q db.Querier, name string) ([]byte, error) {
	var text media.Secret
	err := q.QueryRow(ctx, `
		INSERT INTO signing_keys (name, secret) VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING secret`, name, newKey()).Scan(&text)
	if err != nil {
		return nil, fmt.Errorf("signing key %s: %w", name, err)
	}
	key, err := hex.DecodeString(string(text))
	if err != nil || len(key) != keyLength {
		return nil, fmt.Errorf("signing key %s: not %d hex-encoded bytes", name, keyLength)
	}
	return key, nil
}

// ChannelKeys is notified after a rotation of a signing key.
const ChannelKeys = "parley_keys"

// RotateKey replaces the key of a name. Everything signed with the old key becomes invalid within seconds on all nodes.
func RotateKey(ctx context.Context, q db.Querier, name string) error {
	_, err := q.Exec(ctx, `
		INSERT INTO signing_keys (name, secret) VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET secret = excluded.secret, changed_at = now()`, name, newKey())
	if err == nil {
		_, err = q.Exec(ctx, "SELECT pg_notify($1, '')", ChannelKeys)
	}
	return db.Wrap(err, fmt.Sprintf("signing key %s", name))
}

// keyPoll is the delay after which a rotation is noticed if the notification is lost.
const keyPoll = 5 * time.Second

// RotatingKey is a shared key that follows its rotation. It is safe for concurrent use.
type RotatingKey struct {
	Store *Store
	Name  string
	Wake  <-chan struct{} // signals ChannelKeys; may be nil
	Log   *slog.Logger    // nil disables logging

	key atomic.Pointer[[]byte]
}

// Load reads the current key.
func (k *RotatingKey) Load(ctx context.Context) error {
	key, err := SharedKey(ctx, k.Store.Pool, k.Name)
	if err != nil {
		return err
	}
	k.key.Store(&key)
	return nil
}

// Key returns the key after the first successful Load.
func (k *RotatingKey) Key() []byte {
	key := k.key.Load()
	if key == nil {
		return bytes.Clone([]byte(newKey())) // a random key: no signature verifies
	}
	return *key
}

// Run reloads the key until ctx ends.
func (k *RotatingKey) Run(ctx context.Context) {
	tick := time.NewTicker(keyPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.Wake:
		case <-tick.C:
		}
		if err := k.Load(ctx); err != nil && k.Log != nil && !errors.Is(err, context.Canceled) {
			k.Log.WarnContext(ctx, "failed to read a signing key", "name", k.Name, "err", err)
		}
	}
}
