package db_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-voice/parley/control/db"
)

// readOnly makes all sessions of a server read-only, or writable again.
func readOnly(t *testing.T, l *db.Local, on bool) {
	t.Helper()
	for _, sql := range []string{fmt.Sprintf("ALTER SYSTEM SET default_transaction_read_only = %t", on), "SELECT pg_reload_conf()"} {
		if err := query(t.Context(), l, sql); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReadOnlyServer checks that a server that became read-only counts as unavailable, and that a URL with several
// hosts connects to the host that accepts writes.
func TestReadOnlyServer(t *testing.T) {
	first, second := start(t, openDir(t)), start(t, openDir(t))
	host := func(l *db.Local) string {
		_, rest, _ := strings.Cut(l.URL("parley"), "host=")
		at, _, _ := strings.Cut(rest, " ")
		return at
	}
	url := strings.Replace(first.URL("parley"), host(first), host(first)+","+host(second), 1)
	url = strings.Replace(url, "port=5432", "port=5432,5432", 1)
	one, err := db.Open(t.Context(), db.Config{URL: first.URL("parley"), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	both, err := db.Open(t.Context(), db.Config{URL: url + " target_session_attrs=read-write", MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer both.Close()
	for _, d := range []*db.DB{one, both} {
		if err := d.Writable(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := query(t.Context(), second, "CREATE TABLE here ()"); err != nil {
		t.Fatal(err)
	}
	readOnly(t, first, true)
	eventually(t, func() bool { return one.Writable(t.Context()) != nil })
	if err := one.Writable(t.Context()); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("a read-only database: %v", err)
	}
	if _, err := one.Pool.Exec(t.Context(), "CREATE TABLE there ()"); !db.IsUnavailable(err) {
		t.Errorf("a write to a read-only database is not away: %v", err)
	}
	if _, err := both.Pool.Exec(t.Context(), "CREATE TABLE there ()"); !db.IsUnavailable(err) {
		t.Errorf("the first write: %v", err)
	}
	if _, err := both.Pool.Exec(t.Context(), "DROP TABLE here"); err != nil {
		t.Errorf("the next write does not go to the other server: %v", err)
	}
	readOnly(t, first, false)
	eventually(t, func() bool { return one.Writable(t.Context()) == nil })
}
