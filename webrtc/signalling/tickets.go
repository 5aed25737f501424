package signalling

import (
	"strings"
	"time"

	"github.com/parley-voice/parley/webrtc/ice"
	"github.com/parley-voice/parley/webrtc/token"
)

// Tickets makes what browsers join their calls with.
type Tickets struct {
	Key     token.Key
	Servers ice.Servers
	// PublicURL is where browsers reach the service: http or https.
	PublicURL string
}

// Ticket returns the members of the answer to an order that let a browser in. It
// is the same each time.
func (t Tickets) Ticket(callID string, expires, until time.Time) map[string]any {
	base := strings.TrimSuffix(t.PublicURL, "/")
	return map[string]any{
		"access_token": t.Key.Sign(t.Key.For(callID, expires)), "token_type": "Bearer",
		"url": "ws" + strings.TrimPrefix(base, "http") + "/rtc?v=1", "whip_url": base + "/rtc/whip",
		"ice_servers": t.Servers.For(callID, until), "ice_transport_policy": "all",
	}
}
