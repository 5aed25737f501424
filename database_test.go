package main

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/secretbox"
	"github.com/parley-voice/parley/media"
)

// TestSealKey checks that an encrypted database cannot be opened without its key.
func TestSealKey(t *testing.T) {
	c := testConfig(t)
	c.DatabaseURL, c.SealKey = media.Secret(dbtest.URL(t)), secretbox.Generate()
	log := slog.New(slog.DiscardHandler)
	d, err := openDatabase(t.Context(), c, db.MinConns, 0, log)
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
	c.SealKey = secretbox.Generate()
	if _, err = openDatabase(t.Context(), c, db.MinConns, 0, log); err == nil || !strings.Contains(err.Error(), "is not among PARLEY_SEAL_KEY") {
		t.Errorf("with another key: %v", err)
	}
}
