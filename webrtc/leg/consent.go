package leg

import (
	"time"

	"github.com/pion/webrtc/v4"
)

const (
	// consentTimeout is how long consent lasts after the last answer to a connectivity check (RFC 7675 section 5.1).
	// Checks are sent every second.
	consentTimeout = 30 * time.Second
	// consentCheckEvery is the interval at which watchConsent looks for new answers.
	consentCheckEvery = 2 * time.Second
)

// A consent tracks whether the remote party still answers connectivity checks. Received media is not consent.
type consent struct {
	limit   time.Duration
	answers uint64
	at      time.Time // time of the last new answer
	lapsed  bool
}

// update takes the total number of answers. When none has arrived for limit, it returns true once, until answers arrive
// again.
func (c *consent) update(answers uint64, now time.Time) bool {
	if c.at.IsZero() || answers != c.answers {
		c.answers, c.at, c.lapsed = answers, now, false
		return false
	}
	if c.lapsed || now.Sub(c.at) < c.limit {
		return false
	}
	c.lapsed = true
	return true
}

// watchConsent stops sending each time consent expires. It returns when the leg or the connection ends. The remote
// party may restart ICE to give consent again (RFC 7675 section 5.1).
func (p *peer) watchConsent() {
	c := consent{limit: p.leg.ConsentTimeout}
	if c.limit == 0 {
		c.limit = consentTimeout
	}
	tick := time.NewTicker(min(consentCheckEvery, c.limit/2))
	defer tick.Stop()
	for {
		select {
		case <-p.leg.done:
			return
		case now := <-tick.C:
			if p.pc.ConnectionState() == webrtc.PeerConnectionStateClosed {
				return
			}
			pair, ok := p.pc.SCTP().Transport().ICETransport().GetSelectedCandidatePairStats()
			if ok && c.update(pair.ResponsesReceived, now) {
				p.leg.Log.Debug("peer connection", "state", "without consent")
				p.leg.onConnection(p, false)
			}
		}
	}
}
