package leg

import (
	"context"
	"strings"

	"github.com/pion/webrtc/v4"
)

// ApplyFragment applies an SDP fragment (RFC 8840). The fragment contains candidates of the current ICE session. If it
// has a new ice-ufrag, it restarts ICE. ApplyFragment returns the local fragment for a restart, and "" otherwise.
func (l *Leg) ApplyFragment(ctx context.Context, fragment string) (answer string, err error) {
	p, err := l.current()
	if err != nil {
		return "", err
	}
	now := p.pc.RemoteDescription()
	if now == nil {
		return "", &OfferError{"no offer yet"}
	}
	user, password := attribute(fragment, "ice-ufrag"), attribute(fragment, "ice-pwd")
	if user != "" && user != attribute(now.SDP, "ice-ufrag") {
		if password == "" {
			return "", &OfferError{"ice-pwd is missing"}
		}
		described, err := l.AnswerRestart(ctx, restartOffer(now.SDP, fragment, user, password))
		return fragmentOf(described), err
	}
	for line := range strings.Lines(fragment) {
		if c, ok := strings.CutPrefix(strings.TrimSpace(line), "a=candidate:"); ok {
			first := uint16(0)
			if err := l.AddCandidate(&webrtc.ICECandidateInit{Candidate: "candidate:" + c, SDPMLineIndex: &first}); err != nil {
				return "", err
			}
		}
	}
	return "", nil
}

func attribute(sdp, name string) string {
	for line := range strings.Lines(sdp) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "a="+name+":"); ok {
			return v
		}
	}
	return ""
}

// restartOffer returns offer with new ICE credentials and the candidates of fragment.
func restartOffer(offer, fragment, user, password string) string {
	var b strings.Builder
	for line := range strings.Lines(offer) {
		switch {
		case strings.HasPrefix(line, "a=candidate:"), strings.HasPrefix(line, "a=end-of-candidates"):
			continue
		case strings.HasPrefix(line, "a=ice-ufrag:"):
			line = "a=ice-ufrag:" + user + "\r\n"
		case strings.HasPrefix(line, "a=ice-pwd:"):
			line = "a=ice-pwd:" + password + "\r\n"
		}
		b.WriteString(line)
	}
	for line := range strings.Lines(fragment) {
		if strings.HasPrefix(line, "a=candidate:") {
			b.WriteString(strings.TrimSpace(line) + "\r\n")
		}
	}
	return b.String()
}

func fragmentOf(sdp string) string {
	var b strings.Builder
	for line := range strings.Lines(sdp) {
		for _, prefix := range []string{"m=", "a=mid:", "a=ice-ufrag:", "a=ice-pwd:", "a=ice-options:", "a=candidate:", "a=end-of-candidates"} {
			if strings.HasPrefix(line, prefix) {
				b.WriteString(line)
			}
		}
	}
	return b.String()
}
