package ice

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // required by TURN servers
	"encoding/base64"
	"strconv"
	"time"

	"github.com/parley-voice/parley/media"
)

// A Server is a STUN or TURN server in the form of RTCIceServer.
type Server struct {
	URLs       []string `json:"urls"`
	Username   string   `json:"username,omitempty"`
	Credential string   `json:"credential,omitempty"`
}

// Servers are the STUN and TURN servers offered to browsers.
type Servers struct {
	STUN []string // URLs of STUN servers
	TURN []string // URLs of TURN servers; each call gets credentials of its own
	// Secret is the shared secret of the TURN servers ("static-auth-secret" in coturn).
	Secret media.Secret
}

// ForCall returns the servers for a call. The TURN credentials expire at until. The user name contains until and the
// call ID. The password is the HMAC-SHA1 of the user name with the secret (draft-uberti-behave-turn-rest).
func (s Servers) ForCall(callID string, until time.Time) []Server {
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

// Credential returns the password of a user name.
func Credential(secret media.Secret, user string) string {
	mac := hmac.New(sha1.New, []byte(secret))
	mac.Write([]byte(user))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
