package apikeys

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db/dbtest"
)

// TestConcurrentAuthentication sends requests whose keys are read in one query. Each request must get its own key. The
// use of a key must be recorded only once.
func TestConcurrentAuthentication(t *testing.T) {
	d := dbtest.New(t)
	keys := &Keys{Pool: d.Pool}
	var headers, ids []string
	for _, name := range []string{"acme", "globex", "initech"} {
		dbtest.Exec(t, d, "INSERT INTO organizations (id, name) VALUES ($1, $1)", name)
		id, secret, err := CreateKey(t.Context(), d.Pool, Key{OrgID: name})
		if err != nil {
			t.Fatal(err)
		}
		headers, ids = append(headers, "Bearer "+string(secret)), append(ids, id)
	}
	if err := Revoke(t.Context(), d.Pool, ids[2]); err != nil {
		t.Fatal(err)
	}
	var asking sync.WaitGroup
	for n := range 64 {
		asking.Go(func() {
			want := []control.Code{"", "", control.CodeKeyRevoked, control.CodeKeyUnknown}[n%4]
			key, err := keys.Authenticate(t.Context(), []string{headers[0], headers[1], headers[2], "Bearer pk_other"}[n%4])
			if want == "" && (err != nil || key.ID != ids[n%4]) || want != "" && control.CodeOf(err) != want {
				t.Errorf("%d: %+v, %v", n, key, err)
			}
		})
	}
	asking.Wait()
	used := func() (at [3]*time.Time) {
		for n, id := range ids {
			if err := d.Pool.QueryRow(t.Context(), "SELECT last_used_at FROM api_keys WHERE id = $1", id).Scan(&at[n]); err != nil {
				t.Fatal(err)
			}
		}
		return at
	}
	first := used()
	if first[0] == nil || first[1] == nil || first[2] != nil {
		t.Fatalf("used at %v", first)
	}
	if _, err := keys.Authenticate(t.Context(), headers[0]); err != nil {
		t.Fatal(err)
	}
	if again := used(); !again[0].Equal(*first[0]) {
		t.Error("a use within the minute is written")
	}
	// A request after the revocation is refused.
	err := Revoke(t.Context(), d.Pool, ids[0])
	if _, refused := keys.Authenticate(t.Context(), headers[0]); err != nil || control.CodeOf(refused) != control.CodeKeyRevoked {
		t.Error(errors.Join(err, refused))
	}
}
