package leg

import (
	"net/netip"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/webrtc/v4"
)

// Each remote candidate receives connectivity checks, to any address that it names. The limits per description and per
// leg bound that traffic. Dropping a candidate does no harm: a peer that can reach this host becomes known through its
// own checks (RFC 8445 section 7.3.1.3).
const (
	maxCandidates  = 32 // maximum number of candidates per description
	candidateBurst = 96 // maximum number of candidates of all descriptions at once
	candidateRate  = 1  // further candidates per second
)

type candidateBudget struct {
	used float64
	at   time.Time
}

func (a *candidateBudget) spend(now time.Time) bool {
	a.used = max(0, a.used-now.Sub(a.at).Seconds()*candidateRate)
	a.at = now
	if a.used+1 > candidateBurst {
		return false
	}
	a.used++
	return true
}

func (p *peer) accepts(candidate string, now time.Time) bool {
	c, err := ice.UnmarshalCandidate(candidate)
	if err != nil || c.TCPType() == ice.TCPTypeActive { // an active TCP candidate opens a connection to this host
		return false
	}
	at, err := netip.ParseAddr(c.Address())
	if err != nil || !p.leg.Connector.CanReach(at) { // a host name is a valid address (RFC 8839 section 5.1)
		return false
	}
	l := p.leg
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.candidates >= maxCandidates || !l.candidates.spend(now) {
		return false
	}
	p.candidates++
	return true
}

func (p *peer) filterCandidates(offer string, now time.Time) (string, error) {
	d := webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer}
	all, err := d.Unmarshal()
	if err != nil {
		return "", err
	}
	p.leg.mu.Lock()
	p.candidates = 0
	p.leg.mu.Unlock()
	accepted := all.Attributes[:0]
	for _, a := range all.Attributes {
		if !a.IsICECandidate() || p.accepts(a.Value, now) {
			accepted = append(accepted, a)
		}
	}
	all.Attributes = accepted
	for _, m := range all.MediaDescriptions {
		accepted := m.Attributes[:0]
		for _, a := range m.Attributes {
			if !a.IsICECandidate() || p.accepts(a.Value, now) {
				accepted = append(accepted, a)
			}
		}
		m.Attributes = accepted
	}
	text, err := all.Marshal()
	return string(text), err
}
