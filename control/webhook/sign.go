// Package webhook delivers events of calls to organizations. It signs deliveries by Standard Webhooks 1.0.0. Each
// delivery arrives at least once. Endpoints do not affect each other.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/parley-voice/parley/media"
)

// Types of events.
const (
	CallEnded    = "call_ended"    // the call has ended
	CallAnalyzed = "call_analyzed" // the call's analysis and recording are final
)

// Types returns the events to which an endpoint can subscribe.
func Types() []string { return []string{CallEnded, CallAnalyzed} }

// secretPrefix starts a secret. The base64 of the key follows it.
const secretPrefix = "whsec_"

func signingKey(secret media.Secret) ([]byte, error) {
	text, ok := strings.CutPrefix(string(secret), secretPrefix)
	key, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(key) < 24 || len(key) > 64 {
		return nil, errors.New("a webhook secret must be whsec_ followed by the base64 of 24 to 64 bytes")
	}
	return key, nil
}

// keyring holds the keys that sign deliveries: one, or two during a rotation.
type keyring [][]byte

// sign sets the signature headers of one attempt to deliver body.
func (k keyring) sign(h http.Header, id string, at time.Time, body []byte) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(k))
	for i, key := range k {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(id + "." + stamp + "."))
		m.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(m.Sum(nil))
	}
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", stamp)
	h.Set("Webhook-Signature", strings.Join(signatures, " "))
}
