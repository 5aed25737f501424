package store_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/secretbox"
	"github.com/parley-voice/parley/control/store"
)

// TestSigningKeysAreSealed checks that keys that were stored in plain text are encrypted without changing their
// values.
func TestSigningKeysAreSealed(t *testing.T) {
	d := dbtest.New(t)
	old := bytes.Repeat([]byte{7}, 32)
	move, err := os.ReadFile("../db/migrations/00170_signing_keys.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range append([]string{
		"DROP TABLE signing_keys", "INSERT INTO shared_keys (name, value) VALUES ('links', decode('" + hex.EncodeToString(old) + "', 'hex')), ('seal', 'x')",
	}, strings.Split(string(move), ";\n")...) {
		dbtest.Exec(t, d, sql)
	}
	if err = (&secretbox.Box{}).Load(t.Context(), d.Pool, secretbox.Source{Keys: dbtest.SealKey}); err != nil {
		t.Fatal(err)
	}
	key, err := store.SharedKey(t.Context(), d.Pool, "links")
	if err != nil || !bytes.Equal(key, old) {
		t.Errorf("%x, %v", key, err)
	}
	fresh, err := store.SharedKey(t.Context(), d.Pool, "web")
	if err != nil || len(fresh) != 32 {
		t.Fatal(err)
	}
	var dump string
	err = d.Pool.QueryRow(t.Context(), "SELECT (SELECT string_agg(k::text, ' ') FROM signing_keys k) || (SELECT string_agg(k::text, ' ') FROM shared_keys k)").Scan(&dump)
	if err != nil || strings.Contains(dump, hex.EncodeToString(old)) || strings.Contains(dump, hex.EncodeToString(fresh)) || strings.Count(dump, "sealed:v1:") != 2 || !strings.Contains(dump, "seal,") {
		t.Errorf("%s, %v", dump, err)
	}
}

// TestKeysRotate checks that a node uses the new key at once after a rotation.
func TestKeysRotate(t *testing.T) {
	d := dbtest.New(t)
	ctx, quit := context.WithCancel(t.Context())
	listener := &db.Listener{Pool: d.Pool}
	k := &store.RotatingKey{Store: &store.Store{Pool: d.Pool}, Name: "links", Wake: listener.Subscribe(store.ChannelKeys)}
	if bytes.Equal(k.Key(), k.Key()) {
		t.Error("there is a key before it is loaded")
	}
	if err := k.Load(ctx); err != nil {
		t.Fatal(err)
	}
	var tasks sync.WaitGroup
	tasks.Go(func() { listener.Run(ctx) })
	tasks.Go(func() { k.Run(ctx) })
	before := k.Key()
	if err := store.RotateKey(ctx, d.Pool, "links"); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(20 * time.Second); bytes.Equal(k.Key(), before); {
		if time.Now().After(until) {
			t.Fatal("the key is still the one before")
		}
		<-time.After(time.Millisecond)
	}
	quit()
	tasks.Wait()
}
