package leg

import (
	"time"

	"github.com/pion/webrtc/v4"
)

const (
	// consentFor is how long a party's consent holds after it last answered a
	// check of ours (RFC 7675 section 5.1); checks go out each second.
	consentFor = 30 * time.Second
	// askedEvery is how often it is looked whether it did.
	askedEvery = 2 * time.Second
)

// A consent is whether a party still wants what it is sent. That it sends to us
// says nothing about it: it must answer.
type consent struct {
	lasts   time.Duration
	answers uint64
	at      time.Time // of the last that was new
	gone    bool
}

// expired takes how many answers there were until now, and is true once each time
// that there were none for too long.
func (c *consent) expired(answers uint64, now time.Time) bool {
	if c.at.IsZero() || answers != c.answers {
		c.answers, c.at, c.gone = answers, now, false
		return false
	}
	if c.gone || now.Sub(c.at) < c.lasts {
		return false
	}
	c.gone = true
	return true
}

// consents stops what is sent to a party that does not answer any more, until the
// leg or the connection is over. The party may restart (RFC 7675 section 5.1).
func (p *peer) consents() {
	c := consent{lasts: p.leg.Consent}
	if c.lasts == 0 {
		c.lasts = consentFor
	}
	tick := time.NewTicker(min(askedEvery, c.lasts/2))
	defer tick.Stop()
	for {
		select {
		case <-p.leg.over:
			return
		case now := <-tick.C:
			if p.pc.ConnectionState() == webrtc.PeerConnectionStateClosed {
				return
			}
			pair, ok := p.pc.SCTP().Transport().ICETransport().GetSelectedCandidatePairStats()
			if ok && c.expired(pair.ResponsesReceived, now) {
				p.leg.Log.Debug("peer connection", "state", "without consent")
				p.leg.connected(p, false)
			}
		}
	}
}
