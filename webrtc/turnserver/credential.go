package turnserver

import (
	"strconv"
	"strings"
	"time"

	"github.com/pion/turn/v5"

	"github.com/parley-voice/parley/webrtc/ice"
)

// authenticate returns the authentication key for a user name that has not expired (draft-uberti-behave-turn-rest). The
// library calls it for each request, so a refresh after the expiry also fails.
func (c Config) authenticate(r *turn.RequestAttributes) (user string, key []byte, ok bool) {
	_, until, ok := parse(r.Username)
	if !ok || r.Realm != realm || !c.now().Before(until) {
		return "", nil, false
	}
	return r.Username, turn.GenerateAuthKey(r.Username, realm, ice.Credential(c.Secret, r.Username)), true
}

// parse splits a user name into expiry and call ID.
func parse(user string) (call string, until time.Time, ok bool) {
	at, call, ok := strings.Cut(user, ":")
	unix, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil || unix < 0 || call == "" {
		return "", time.Time{}, false
	}
	return call, time.Unix(unix, 0), true
}
