package main

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/seal"
	"github.com/parley-voice/parley/media"
)

// TestSealKey: a database that was sealed with a key is not opened without it.
func TestSealKey(t *testing.T) {
	c := testConfig(t)
	c.DatabaseURL, c.SealKey = media.Secret(dbtest.URL(t)), seal.Generate()
	log := slog.New(slog.DiscardHandler)
	d, err := openDatabase(t.Context(), c, 2, log)
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Pool.Exec(t.Context(), `
		WITH o AS (INSERT INTO organizations (id, name) VALUES ('o', 'o'))
		INSERT INTO trunks (id, org_id, name, proxy, password) VALUES ('t', 'o', 't', 'sip:x', $1)`, media.Secret("canary"))
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	c.SealKey = seal.Generate()
	if _, err = openDatabase(t.Context(), c, 2, log); err == nil || !strings.Contains(err.Error(), "is not among PARLEY_SEAL_KEY") {
		t.Errorf("with another key: %v", err)
	}
}
