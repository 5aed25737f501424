package sip

import (
	"testing"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/siptest"
)

func TestChallenge(t *testing.T) {
	for _, row := range []struct {
		name        string
		challenge   siptest.Challenge
		trunk       media.Trunk
		answered    bool
		invites     int
		credentials int // INVITEs that carry them
	}{
		{"proxy", siptest.Challenge{Realm: "trunk", Username: "u", Password: "p", Proxy: true}, media.Trunk{Username: "u", Password: "p"}, true, 2, 1},
		{"server, SHA-256", siptest.Challenge{Realm: "trunk", Username: "u", Password: "p", Algorithm: "SHA-256"}, media.Trunk{Username: "u", Password: "p", Realm: "trunk"}, true, 2, 1},
		{"without qop", siptest.Challenge{Realm: "trunk", Username: "u", Password: "p", NoQOP: true}, media.Trunk{Username: "u", Password: "p"}, true, 2, 1},
		{"stale", siptest.Challenge{Realm: "trunk", Username: "u", Password: "p", Stale: true}, media.Trunk{Username: "u", Password: "p"}, true, 3, 2},
		{"wrong password", siptest.Challenge{Realm: "trunk", Username: "u", Password: "p"}, media.Trunk{Username: "u", Password: "q"}, false, 2, 1},
		{"never content", siptest.Challenge{Realm: "trunk"}, media.Trunk{Username: "u", Password: "p"}, false, 2, 1},
		{"foreign realm", siptest.Challenge{Realm: "evil.example", Username: "u", Password: "p"}, media.Trunk{Username: "u", Password: "p", Realm: "trunk"}, false, 1, 0},
		{"no credentials", siptest.Challenge{Realm: "trunk", Username: "u", Password: "p"}, media.Trunk{}, false, 1, 0},
		{"other algorithm", siptest.Challenge{Realm: "trunk", Username: "u", Password: "p", Algorithm: "MD5-sess"}, media.Trunk{Username: "u", Password: "p"}, false, 1, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLine(t, func(siptest.Invite) siptest.Script {
				return siptest.Script{Status: 200, Challenge: &row.challenge}
			})
			target := l.target()
			row.trunk.Proxy = target.Trunk.Proxy
			target.Trunk = row.trunk
			sent := 0
			count := func(p media.Progress) {
				if p == media.Sent {
					sent++
				}
			}
			if row.answered {
				leg, err := l.ua.Dial(t.Context(), target, count)
				if err != nil {
					t.Fatal(err)
				}
				_ = leg.Hangup(media.LocalHangup)
				l.last(t, func(e siptest.Entry) bool { return e.Cause == media.RemoteHangup })
			} else if failure := l.dialError(t, t.Context(), target, count); failure.Cause != media.AuthFailed || failure.Err == nil {
				t.Errorf("got %v (%v)", failure, failure.Err)
			}
			journal, credentials := l.carrier.Journal(), 0
			for _, e := range journal {
				if e.Credentials {
					credentials++
				}
				if e.ID != target.ID {
					t.Errorf("call id %s", e.CallID)
				}
			}
			if len(journal) != row.invites || credentials != row.credentials || sent != 1 {
				t.Errorf("%d INVITEs, %d with credentials, told %d times", len(journal), credentials, sent)
			}
		})
	}
}

// TestRealmIsPinned has a phone behind the trunk ask for credentials after the
// trunk itself has: its realm is foreign.
func TestRealmIsPinned(t *testing.T) {
	l := newLine(t, func(in siptest.Invite) siptest.Script {
		realm := "trunk"
		if in.To == "666" {
			realm = "evil.example"
		}
		return siptest.Script{Status: 486, Challenge: &siptest.Challenge{Realm: realm, Username: "u", Password: "p"}}
	})
	for _, want := range []struct {
		to    string
		cause media.Cause
	}{{"1", media.Busy}, {"666", media.AuthFailed}, {"1", media.Busy}} {
		target := l.target()
		target.To = want.to
		target.Trunk.Username, target.Trunk.Password = "u", "p"
		if failure := l.dialError(t, t.Context(), target, nil); failure.Cause != want.cause {
			t.Errorf("to %s: %v", want.to, failure)
		}
	}
	for _, e := range l.carrier.Journal() {
		if e.Credentials && e.To != "1" {
			t.Errorf("credentials went to %+v", e)
		}
	}
}

// TestRealmOfOneCall has a phone behind the trunk ask for credentials before the
// trunk itself does. They take its call nowhere, and bind nobody: the next call
// answers the trunk.
func TestRealmOfOneCall(t *testing.T) {
	l := newLine(t, func(in siptest.Invite) siptest.Script {
		realm := "trunk"
		if in.To == "666" {
			realm = "evil.example"
		}
		return siptest.Script{Ring: -1, Status: 486, Challenge: &siptest.Challenge{Realm: realm, Username: "u", Password: "p"}}
	})
	for _, to := range []string{"666", "1"} {
		target := l.target()
		target.To = to
		target.Trunk.Username, target.Trunk.Password = "u", "p"
		if failure := l.dialError(t, t.Context(), target, nil); failure.Cause != media.Busy {
			t.Errorf("to %s: %v", to, failure)
		}
	}
}
