package leg

import (
	"net/netip"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/webrtc/v4"
)

// Each candidate that a party names is sent some checks, wherever it is: they are
// few of one description, and few in all where many descriptions come. What is not
// taken is no loss: who reaches us is found by its own checks (RFC 8445 section
// 7.3.1.3).
const (
	mostCandidates  = 32 // of one description
	candidatesKept  = 96 // at once, of all descriptions
	candidatesAfter = 1  // a second
)

// An allowance is how many candidates are taken now.
type allowance struct {
	used float64
	at   time.Time
}

func (a *allowance) take(now time.Time) bool {
	a.used = max(0, a.used-now.Sub(a.at).Seconds()*candidatesAfter)
	a.at = now
	if a.used+1 > candidatesKept {
		return false
	}
	a.used++
	return true
}

// takes says whether a candidate is one to look for the party at.
func (p *peer) takes(candidate string, now time.Time) bool {
	c, err := ice.UnmarshalCandidate(candidate)
	if err != nil || c.TCPType() == ice.TCPTypeActive { // that one comes to us
		return false
	}
	at, err := netip.ParseAddr(c.Address())
	if err != nil || !p.leg.Connector.Reaches(at) { // a name (RFC 8839 section 5.1)
		return false
	}
	l := p.leg
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.named >= mostCandidates || !l.named.take(now) {
		return false
	}
	p.named++
	return true
}

// sift is an offer without the candidates that are not taken.
func (p *peer) sift(offer string, now time.Time) (string, error) {
	d := webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer}
	all, err := d.Unmarshal()
	if err != nil {
		return "", err
	}
	p.leg.mu.Lock()
	p.named = 0
	p.leg.mu.Unlock()
	kept := all.Attributes[:0]
	for _, a := range all.Attributes {
		if !a.IsICECandidate() || p.takes(a.Value, now) {
			kept = append(kept, a)
		}
	}
	all.Attributes = kept
	for _, m := range all.MediaDescriptions {
		kept := m.Attributes[:0]
		for _, a := range m.Attributes {
			if !a.IsICECandidate() || p.takes(a.Value, now) {
				kept = append(kept, a)
			}
		}
		m.Attributes = kept
	}
	text, err := all.Marshal()
	return string(text), err
}
