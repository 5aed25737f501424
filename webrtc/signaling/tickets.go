package signaling

import (
	"strings"
	"time"

	"github.com/parley-voice/parley/webrtc/ice"
)

// Tickets creates the data that browsers join calls with.
type Tickets struct {
	Key     TokenKey
	Servers ice.Servers
	// PublicURL is the service's URL for browsers, http or https.
	PublicURL string
}

// Ticket returns the join members of a call's API response. The result is the
// same each time.
func (t Tickets) Ticket(callID string, expires, until time.Time) map[string]any {
	base := strings.TrimSuffix(t.PublicURL, "/")
	return map[string]any{
		"access_token": t.Key.Sign(t.Key.NewClaims(callID, expires)), "token_type": "Bearer",
		"url": "ws" + strings.TrimPrefix(base, "http") + "/rtc?v=1", "whip_url": base + "/rtc/whip",
		"ice_servers": t.Servers.ForCall(callID, until), "ice_transport_policy": "all",
	}
}
