package leg

import (
	"context"
	"strings"

	"github.com/pion/webrtc/v4"
)

// Fragment takes a part of a description (RFC 8840): candidates of the current
// way or, under another user name, what begins to look for another one. Then it
// returns our part of that; else nothing.
func (l *Leg) Fragment(ctx context.Context, fragment string) (answer string, err error) {
	p, err := l.current()
	if err != nil {
		return "", err
	}
	now := p.pc.RemoteDescription()
	if now == nil {
		return "", &OfferError{"there is no offer yet"}
	}
	user, password := attribute(fragment, "ice-ufrag"), attribute(fragment, "ice-pwd")
	if user != "" && user != attribute(now.SDP, "ice-ufrag") {
		if password == "" {
			return "", &OfferError{"ice-pwd is missing"}
		}
		described, err := l.Restart(ctx, anew(now.SDP, fragment, user, password))
		return part(described), err
	}
	for line := range strings.Lines(fragment) {
		if c, ok := strings.CutPrefix(strings.TrimSpace(line), "a=candidate:"); ok {
			first := uint16(0)
			if err := l.Candidate(&webrtc.ICECandidateInit{Candidate: "candidate:" + c, SDPMLineIndex: &first}); err != nil {
				return "", err
			}
		}
	}
	return "", nil
}

// attribute is the first value of an attribute; empty where there is none.
func attribute(sdp, name string) string {
	for line := range strings.Lines(sdp) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "a="+name+":"); ok {
			return v
		}
	}
	return ""
}

// anew is an offer under another user name, with the candidates of a fragment.
func anew(offer, fragment, user, password string) string {
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

// part is what of a description a fragment has.
func part(sdp string) string {
	var b strings.Builder
	for line := range strings.Lines(sdp) {
		for _, kept := range []string{"m=", "a=mid:", "a=ice-ufrag:", "a=ice-pwd:", "a=ice-options:", "a=candidate:", "a=end-of-candidates"} {
			if strings.HasPrefix(line, kept) {
				b.WriteString(line)
			}
		}
	}
	return b.String()
}
