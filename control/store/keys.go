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

// keyLength is the length of a signing key, in bytes.
const keyLength = 32

func newKey() media.Secret {
	fresh := make([]byte, keyLength)
	_, _ = rand.Read(fresh) // never fails since Go 1.24
	return media.Secret(hex.EncodeToString(fresh))
}

// SharedKey returns the 32-byte signing key with this name. All nodes share the key. The first use creates it.
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

// ChannelKeys is the Postgres channel that is notified after a signing key was rotated.
const ChannelKeys = "parley_keys"

// RotateKey replaces the signing key with this name. Within seconds, all nodes reject what was signed with the old
// key.
func RotateKey(ctx context.Context, q db.Querier, name string) error {
	_, err := q.Exec(ctx, `
		INSERT INTO signing_keys (name, secret) VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET secret = excluded.secret, changed_at = now()`, name, newKey())
	if err == nil {
		_, err = q.Exec(ctx, "SELECT pg_notify($1, '')", ChannelKeys)
	}
	return db.Wrap(err, fmt.Sprintf("signing key %s", name))
}

// keyPoll is the interval of reloading the key, in case a notification is lost.
const keyPoll = 5 * time.Second

// RotatingKey is a shared signing key that is reloaded after its rotation. It is safe for concurrent use.
type RotatingKey struct {
	Store *Store
	Name  string
	Wake  <-chan struct{} // receives a value after a notification of ChannelKeys; may be nil
	Log   *slog.Logger    // nil disables logging

	key atomic.Pointer[[]byte]
}

// Load reads the current key from the database.
func (k *RotatingKey) Load(ctx context.Context) error {
	key, err := SharedKey(ctx, k.Store.Pool, k.Name)
	if err != nil {
		return err
	}
	k.key.Store(&key)
	return nil
}

// Key returns the current key. Before the first successful Load it returns a random key.
func (k *RotatingKey) Key() []byte {
	key := k.key.Load()
	if key == nil {
		return bytes.Clone([]byte(newKey())) // with a random key no signature is valid
	}
	return *key
}

// Run reloads the key after each rotation until ctx ends.
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
