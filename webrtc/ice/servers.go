package ice

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // what TURN servers check by
	"encoding/base64"
	"strconv"
	"time"

	"github.com/parley-voice/parley/media"
)

// A Server is one that a browser finds its way through, as RTCIceServer spells
// it.
type Server struct {
	URLs       []string `json:"urls"`
	Username   string   `json:"username,omitempty"`
	Credential string   `json:"credential,omitempty"`
}

// Servers are those that browsers are told of.
type Servers struct {
	STUN []string // URLs
	TURN []string // URLs; each call gets credentials of its own
	// Secret is what the TURN servers know too: their static-auth-secret.
	Secret media.Secret
}

// For are the servers for a call, with credentials that hold until until: the
// user name is that time and the call, and the password its HMAC-SHA1 under the
// secret (draft-uberti-behave-turn-rest).
func (s Servers) For(callID string, until time.Time) []Server {
	all := []Server{}
	if len(s.STUN) > 0 {
		all = append(all, Server{URLs: s.STUN})
	}
	if len(s.TURN) > 0 {
		user := strconv.FormatInt(until.Unix(), 10) + ":" + callID
		all = append(all, Server{URLs: s.TURN, Username: user, Credential: Credential(s.Secret, user)})
	}
	return all
}

// Credential is the password of a user name.
func Credential(secret media.Secret, user string) string {
	mac := hmac.New(sha1.New, []byte(secret))
	mac.Write([]byte(user))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
