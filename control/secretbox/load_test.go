package secretbox_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/secretbox"
	"github.com/parley-voice/parley/media"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// open opens a database with keys from a source.
func open(t *testing.T, url string, s secretbox.Source) (*db.DB, error) {
	t.Helper()
	box := &secretbox.Box{}
	d, err := db.Open(t.Context(), db.Config{URL: url, MaxConns: 2, Prepare: box.Prepare})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d, box.Load(t.Context(), d.Pool, s)
}

// stored returns the password of a trunk, decrypted and as stored.
func stored(t *testing.T, d *db.DB) (plain media.Secret, text string) {
	t.Helper()
	if err := d.Pool.QueryRow(t.Context(), "SELECT password, password FROM trunks").Scan(&plain, &text); err != nil {
		t.Fatal(err)
	}
	return plain, text
}

// TestLoad changes keys several times, starting with secrets in plain text.
func TestLoad(t *testing.T) {
	url := dbtest.URL(t)
	first, second := string(secretbox.Generate()), string(secretbox.Generate())
	d, err := open(t, url, secretbox.Source{Keys: media.Secret(first)})
	if err != nil {
		t.Fatal(err)
	}
	dbtest.Exec(t, d, `
		WITH o AS (INSERT INTO organizations (id, name) VALUES ('o', 'o'))
		INSERT INTO trunks (id, org_id, name, proxy, password) VALUES ('t', 'o', 't', 'sip:x', $1)`, "canary")
	if plain, text := stored(t, d); plain != "canary" || text != "canary" {
		t.Errorf("never sealed: %q", text)
	}
	before := ""
	for _, tt := range []struct {
		keys     []string
		resealed bool
	}{{[]string{first}, true}, {[]string{first, second}, false}, {[]string{second, first}, true}, {[]string{second}, false}} {
		if d, err = open(t, url, secretbox.Source{Keys: media.Secret(strings.Join(tt.keys, ","))}); err != nil {
			t.Fatal(err)
		}
		plain, text := stored(t, d)
		if plain != "canary" || strings.Contains(text, "canary") || (text != before) != tt.resealed {
			t.Errorf("%+v: stored %q, before %q", tt, text, before)
		}
		before = text
	}
	_, err = open(t, url, secretbox.Source{Keys: media.Secret(first)})
	if _, ok := errors.AsType[*secretbox.UnknownKeyError](err); !ok || !strings.Contains(err.Error(), "password of trunk") {
		t.Errorf("without the key: %v", err)
	}
}

// TestBox checks that secrets cannot be written before the keys are set, and are encrypted afterwards.
func TestBox(t *testing.T) {
	box := &secretbox.Box{}
	d, err := db.Open(t.Context(), db.Config{URL: dbtest.URL(t), MaxConns: 2, Prepare: box.Prepare})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var got media.Secret
	var text string
	ask := func(plain media.Secret) error {
		return d.Pool.QueryRow(t.Context(), "SELECT x, x FROM (SELECT $1::text AS x) y", plain).Scan(&got, &text)
	}
	if err = ask("canary"); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("without keys: %v", err)
	}
	if err = box.Load(t.Context(), d.Pool, secretbox.Source{}); err != nil {
		t.Fatal(err)
	}
	for _, plain := range []media.Secret{"canary", "", "żółć \n"} {
		if err = ask(plain); err != nil || got != plain || plain != "" && (text == string(plain) || !strings.HasPrefix(text, "sealed:v1:")) {
			t.Errorf("%q was written as %q: %v", string(plain), text, err)
		}
	}
	// Without configured keys, all processes use the same key from the database.
	other := &secretbox.Box{}
	if err = other.Load(t.Context(), d.Pool, secretbox.Source{}); err != nil {
		t.Error(err)
	}
}

// TestColumns checks that Columns lists every column whose name contains "password" or "secret". Hashes are exempt,
// because they do not reveal the secret.
func TestColumns(t *testing.T) {
	d := dbtest.New(t)
	rows, err := d.Pool.Query(t.Context(), `
		SELECT table_name, column_name FROM information_schema.columns
		WHERE table_schema = 'public' AND column_name ~ 'password|secret' AND column_name !~ '_hash$'`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[secretbox.Column])
	if err != nil || len(all) < 4 {
		t.Fatalf("%v, %v", all, err)
	}
	for _, c := range all {
		if !slices.Contains(secretbox.Columns(), c) {
			t.Errorf("%s of %s is not sealed", c.Name, c.Table)
		}
	}
}

// TestHeaderMigration checks that the migration moves tool headers out of agent definitions into encrypted columns.
func TestHeaderMigration(t *testing.T) {
	d := dbtest.New(t)
	const definition = `{"voicemail": "hangup", "tools": [{"type": "end_call"}, {"type": "http", "name": "f", "headers": {"X-Key": "canary"}}]}`
	_, err := d.Pool.Exec(t.Context(), `
		WITH o AS (INSERT INTO organizations (id, name) VALUES ('o', 'o')),
			a AS (INSERT INTO agents (id, org_id, name, draft, published_version) VALUES ('a', 'o', 'sales', $1, 1))
		INSERT INTO agent_versions (agent_id, version, definition) VALUES ('a', 1, $1)`, definition)
	if err != nil {
		t.Fatal(err)
	}
	move, err := os.ReadFile("../db/migrations/00008_sealed.sql")
	if err != nil {
		t.Fatal(err)
	}
	for sql := range strings.SplitSeq(string(move), ";\n") {
		dbtest.Exec(t, d, sql)
	}
	box := &secretbox.Box{}
	if err = box.Load(t.Context(), d.Pool, secretbox.Source{Keys: dbtest.SealKey}); err != nil {
		t.Fatal(err)
	}
	a, err := agents.Find(t.Context(), d.Pool, "o", "sales")
	if err != nil || len(a.Draft.Tools) != 2 || len(a.Draft.Tools[0].Headers) > 0 || a.Draft.Tools[1].Headers["X-Key"] != "canary" {
		t.Errorf("%+v, %v", a.Draft.Tools, err)
	}
	var text string
	err = d.Pool.QueryRow(t.Context(), `
		SELECT a.draft::text || a.secrets || v.definition::text || v.secrets FROM agents a JOIN agent_versions v ON v.agent_id = a.id`).Scan(&text)
	if err != nil || strings.Contains(text, "canary") || strings.Count(text, "sealed:v1:") != 2 {
		t.Errorf("stored: %s, %v", text, err)
	}
}
