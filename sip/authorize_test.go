package sip

import (
	"maps"
	"testing"
	"time"

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
		credentials int // number of INVITEs with credentials
	}{
		{"proxy", siptest.Challenge{Realm: "trunk", Username: "u", Password: "p", Proxy: true}, media.Trunk{Username: "u", Password: "p"}, true, 2, 1},
		{"server, SHA-256", siptest.Challenge{Realm: "trunk", Username: "u", Password: "p", Algorithm: "SHA-256"}, media.Trunk{Username: "u", Password: "p", Realm: "trunk"}, true, 2, 1},
		{"without qop", siptest.Challenge{Realm: "trunk", Username: "u", Password: "p", NoQOP: true}, media.Trunk{Username: "u", Password: "p", Realm: "trunk"}, true, 2, 1},
		{"without qop, no realm set", siptest.Challenge{Realm: "trunk", Username: "u", Password: "p", NoQOP: true}, media.Trunk{Username: "u", Password: "p"}, false, 1, 0},
		{"stale", siptest.Challenge{Realm: "trunk", Username: "u", Password: "p", Stale: true}, media.Trunk{Username: "u", Password: "p"}, true, 3, 2},
		{"wrong password", siptest.Challenge{Realm: "trunk", Username: "u", Password: "p"}, media.Trunk{Username: "u", Password: "q"}, false, 2, 1},
		{"endless challenges", siptest.Challenge{Realm: "trunk"}, media.Trunk{Username: "u", Password: "p"}, false, 2, 1},
		{"foreign realm", siptest.Challenge{Realm: "evil.example", Username: "u", Password: "p"}, media.Trunk{Username: "u", Password: "p", Realm: "trunk"}, false, 1, 0},
		{"no credentials", siptest.Challenge{Realm: "trunk", Username: "u", Password: "p"}, media.Trunk{}, false, 1, 0},
		{"other algorithm", siptest.Challenge{Realm: "trunk", Username: "u", Password: "p", Algorithm: "MD5-sess"}, media.Trunk{Username: "u", Password: "p"}, false, 1, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newEnv(t, func(siptest.Invite) siptest.Script {
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
				l.waitEntry(t, func(e siptest.Entry) bool { return e.Cause == media.RemoteHangup })
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
				t.Errorf("%d INVITEs, %d with credentials, %d progress reports", len(journal), credentials, sent)
			}
		})
	}
}

// challengeTwoRealms challenges the call and then refuses it: for the callee 666 with a realm
// of its own, for others with the realm of the trunk.
func challengeTwoRealms(ring time.Duration) func(siptest.Invite) siptest.Script {
	return func(in siptest.Invite) siptest.Script {
		realm := "trunk"
		if in.To == "666" {
			realm = "evil.example"
		}
		return siptest.Script{Ring: ring, Status: 486, Challenge: &siptest.Challenge{Realm: realm, Username: "u", Password: "p"}}
	}
}

func (l *env) checkRefusal(t *testing.T, to string, want media.Cause) {
	t.Helper()
	target := l.target()
	target.To, target.Trunk.Username, target.Trunk.Password = to, "u", "p"
	if failure := l.dialError(t, t.Context(), target, nil); failure.Cause != want {
		t.Errorf("to %s: %v", to, failure)
	}
}

// checkNoCredentials checks that the callee 666 received no credentials.
func (l *env) checkNoCredentials(t *testing.T) {
	t.Helper()
	for _, e := range l.carrier.Journal() {
		if e.Credentials && e.To == "666" {
			t.Errorf("credentials went to %+v", e)
		}
	}
}

// TestRealmIsPinned checks that a callee's challenge with another realm gets no credentials once the trunk's realm is
// pinned.
func TestRealmIsPinned(t *testing.T) {
	l := newEnv(t, challengeTwoRealms(0))
	l.checkRefusal(t, "1", media.Busy)
	l.checkRefusal(t, "666", media.AuthFailed)
	l.checkRefusal(t, "1", media.Busy)
	l.checkNoCredentials(t)
}

// TestCalleeChallengeFailsOneCall checks a callee's challenge that comes before any challenge of the trunk. It fails
// only its own call, and the next call answers the trunk's challenge.
func TestCalleeChallengeFailsOneCall(t *testing.T) {
	l := newEnv(t, challengeTwoRealms(-1))
	l.checkRefusal(t, "666", media.Busy)
	l.checkRefusal(t, "1", media.Busy)
}

// TestRealmIsRestored checks that after a restart only the stored realm is answered. A pinned
// realm is reported once, and again until it is stored.
func TestRealmIsRestored(t *testing.T) {
	pinned := 0
	before := newEnvWith(t, &UA{OnPinned: func() { pinned++ }}, challengeTwoRealms(0))
	before.checkRefusal(t, "1", media.Busy)
	before.checkRefusal(t, "1", media.Busy)
	realms := before.ua.Realms()
	if want := map[string]string{before.carrier.Proxy(): "trunk"}; pinned != 1 || !maps.Equal(realms, want) || !maps.Equal(before.ua.Realms(), want) {
		t.Fatalf("OnPinned called %d times, realms %v, want %v", pinned, realms, want)
	}
	before.ua.RestoreRealms(realms)
	if left := before.ua.Realms(); len(left) > 0 {
		t.Errorf("%v is stored, but Realms returns it", left)
	}
	after := newEnv(t, challengeTwoRealms(0))
	after.ua.RestoreRealms(map[string]string{after.carrier.Proxy(): "trunk"})
	after.checkRefusal(t, "666", media.AuthFailed)
	after.checkNoCredentials(t)
	after.checkRefusal(t, "1", media.Busy)
}
