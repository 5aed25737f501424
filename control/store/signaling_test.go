package store_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/media"
)

func TestSignaling(t *testing.T) {
	b := newFixture(t, 10, 1<<20, "sales")
	id := b.order("sales", 1)[0]
	c := b.claim("n")
	if got, err := b.store.Signaling(t.Context(), id); err != nil || len(got) != 0 {
		t.Errorf("before any: %v, %v", got, err)
	}
	ladder := []media.Message{
		{At: time.Date(2026, 1, 1, 0, 0, 0, 123456000, time.UTC), Out: true, Peer: "192.0.2.1:5060/UDP", Line: "INVITE sip:1@x", Note: "1 INVITE"},
		{At: time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC), Peer: "192.0.2.1:5060/UDP", Line: `603 "No" <way>`},
	}
	for range 2 { // the second write replaces the first
		if err := b.store.Trace(t.Context(), c.Lease, ladder); err != nil {
			t.Fatal(err)
		}
	}
	got, err := b.store.Signaling(t.Context(), id)
	if err != nil || !reflect.DeepEqual(got, ladder) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := b.store.Signaling(t.Context(), "call_none"); control.CodeOf(err) != control.CodeCallNotFound {
		t.Errorf("of no call: %v", err)
	}
	if err := b.store.Trace(t.Context(), control.Lease{CallID: "call_none", AttemptID: "a"}, ladder); err != nil {
		t.Errorf("a call that was deleted: %v", err)
	}
	b.exec("DELETE FROM organizations")
	var left int
	if err := b.db.Pool.QueryRow(t.Context(), "SELECT count(*) FROM call_signalling").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d ladders outlive their organization, %v", left, err)
	}
}

func TestTransferIsStored(t *testing.T) {
	b := newFixture(t, 10, 1<<20, "sales")
	for _, want := range []string{`{"to": "+12025550111"}`, ""} {
		id := b.order("sales", 1)[0]
		c := b.claim("n")
		b.advance(c, control.Answered)
		f := control.CallResult{Status: control.Ended, Reason: "transferred", EndedAt: time.Now(), Recording: control.RecordingNone}
		if want != "" {
			f.Transfer = json.RawMessage(want)
		}
		if err := b.store.Finish(t.Context(), c.Lease, f); err != nil {
			t.Fatal(err)
		}
		if got := b.call(id).Transfer; string(got) != want {
			t.Errorf("%s, want %s", got, want)
		}
		b.exec("UPDATE subgroups SET next_dial_at = now() - interval '1 s'")
	}
}

func TestQualityIsStored(t *testing.T) {
	b := newFixture(t, 10, 1<<20, "sales")
	for _, want := range []string{`{"mos": 4.3}`, ""} {
		id := b.order("sales", 1)[0]
		c := b.claim("n")
		b.advance(c, control.Answered)
		f := control.CallResult{Status: control.Ended, Reason: "callee_hangup", EndedAt: time.Now(), Recording: control.RecordingNone}
		if want != "" {
			f.Quality = json.RawMessage(want)
		}
		if err := b.store.Finish(t.Context(), c.Lease, f); err != nil {
			t.Fatal(err)
		}
		if got := b.call(id).Quality; string(got) != want {
			t.Errorf("%s, want %s", got, want)
		}
		b.exec("UPDATE subgroups SET next_dial_at = now() - interval '1 s'")
	}
}

// TestClaimTrunkSettings checks that a claim contains the stored settings of its trunk.
func TestClaimTrunkSettings(t *testing.T) {
	b := newFixture(t, 10, 1<<20, "sales")
	b.order("sales", 1)
	b.exec(`UPDATE trunks SET username = 'u', password = 'p', settings = '{"backups": ["sip:b"], "codecs": ["g722"], "encryption": "srtp"}'`)
	want := media.Trunk{Proxy: "sip:127.0.0.1", Backups: []string{"sip:b"}, Username: "u", Password: "p", Codecs: []string{"G722"}, Encryption: media.Encrypted}
	b.exec("UPDATE calls SET dial_number = '9' || to_number")
	to := b.claim("n").Target
	if !reflect.DeepEqual(to.Trunk, want) {
		t.Errorf("%+v, want %+v", to.Trunk, want)
	}
	if to.To != "912025550123" || to.Number != "12025550123" {
		t.Errorf("dials %s to reach %s", to.To, to.Number)
	}
}
