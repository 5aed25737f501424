package signaling

import (
	"strings"
	"time"

	"github.com/parley-voice/parley/webrtc/ice"
)

// Tickets creates the data with which browsers join calls.
type Tickets struct {
	Key     TokenKey
	Servers ice.Servers
	// PublicURL is the URL at which browsers reach the service; http or https.
	PublicURL string
}

// Ticket returns the fields that a browser needs to join a call, for the API response. The token expires at expires,
// and the TURN credentials at until. The same arguments give the same result.
func (t Tickets) Ticket(callID string, expires, until time.Time) map[string]any {
	base := strings.TrimSuffix(t.PublicURL, "/")
	return map[string]any{
		"access_token": t.Key.Sign(t.Key.NewClaims(callID, expires)), "token_type": "Bearer",
		"url": "ws" + strings.TrimPrefix(base, "http") + "/rtc?v=1", "whip_url": base + "/rtc/whip",
		"ice_servers": t.Servers.ForCall(callID, until), "ice_transport_policy": "all",
	}
}
