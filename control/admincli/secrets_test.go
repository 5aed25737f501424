package admincli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-voice/parley/control/admincli"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/secretbox"
	"github.com/parley-voice/parley/media"
)

// TestAudit exports more entries than one query reads, in two parts.
func TestAudit(t *testing.T) {
	d, out := newEnv(t)
	org, err := apikeys.EnsureOrganization(t.Context(), d.Pool, "acme")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = d.Pool.Exec(t.Context(), `INSERT INTO audit_log (org_id, operator_id, who, address, action, object, after, at)
		SELECT $1, '', 'ada@example.com', '192.0.2.1', 'key.create', 'key_' || n, '{"name": "crm"}', now() - interval '1 minute'
		FROM generate_series(1, 1100) n`, org); err != nil {
		t.Fatal(err)
	}
	export := func(after int64) (ids []int64) {
		t.Helper()
		out.Reset()
		if err := (admincli.Audit{Org: "acme", After: after}).Run(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			var e struct {
				ID     int64
				Object string
				After  struct{ Name string }
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil || e.After.Name != "crm" {
				t.Fatalf("%q: %v", line, err)
			}
			ids = append(ids, e.ID)
		}
		return ids
	}
	all := export(0)
	if len(all) != 1100 || all[0] >= all[1099] {
		t.Fatalf("%d entries", len(all))
	}
	if rest := export(all[1049]); len(rest) != 50 {
		t.Errorf("%d entries after the 1050th", len(rest))
	}
	if err := (admincli.Audit{Org: "other"}).Run(t.Context(), d); err == nil {
		t.Error("an unknown organization was accepted")
	}
}

// TestRotateSecrets encrypts secrets with another key, as in the documented steps.
func TestRotateSecrets(t *testing.T) {
	d, out := newEnv(t)
	if err := (admincli.RotateSecrets{}).Run(t.Context(), d); err == nil || !strings.Contains(err.Error(), "PARLEY_SEAL_KEY") {
		t.Errorf("without keys: %v", err)
	}
	if err := (admincli.GenerateKey{}).Run(d); err != nil {
		t.Fatal(err)
	}
	before, after := media.Secret(strings.TrimSpace(out.String())), secretbox.Generate()
	var keys [2]secretbox.Keys
	for n, text := range []media.Secret{before, after} {
		var err error
		if keys[n], err = secretbox.Parse(text); err != nil {
			t.Fatal(err)
		}
	}
	// The other secrets of the database have keys that the test does not know.
	if _, err := d.Pool.Exec(t.Context(), "DELETE FROM signing_keys"); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		text, err := keys[0].Seal(media.Secret(fmt.Sprint("secret ", n)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = d.Pool.Exec(t.Context(), "INSERT INTO signing_keys (name, secret) VALUES ($1, $2)", fmt.Sprint("key ", n), text); err != nil {
			t.Fatal(err)
		}
	}
	rotate := func(keys media.Secret) string {
		t.Helper()
		out.Reset()
		d.SealKeys = keys
		if err := (admincli.RotateSecrets{}).Run(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for range 2 {
		if got := rotate(after + "," + before); !strings.Contains(got, keys[1][0].ID+"  3") || !strings.Contains(got, keys[0][0].ID+"  0") {
			t.Errorf("%s", got)
		}
	}
	d.SealKeys = before
	if err := (admincli.RotateSecrets{}).Run(t.Context(), d); err == nil || !strings.Contains(err.Error(), keys[1][0].ID) {
		t.Errorf("without a key in use: %v", err)
	}
}
