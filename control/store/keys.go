package store

import (
	"context"
	"crypto/rand"
	"fmt"
)

// SharedKey returns the 32-byte key of a name, the same for all nodes of the
// database, made at its first use.
func (s *Store) SharedKey(ctx context.Context, name string) ([]byte, error) {
	fresh := make([]byte, 32)
	_, _ = rand.Read(fresh) // never fails since Go 1.24
	var key []byte
	err := s.Pool.QueryRow(ctx, `
		INSERT INTO shared_keys (name, value) VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING value`, name, fresh).Scan(&key)
	if err != nil {
		return nil, fmt.Errorf("shared key %s: %w", name, err)
	}
	return key, nil
}
