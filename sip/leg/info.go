package leg

import (
	"strings"

	"github.com/emiago/sipgo/sip"
)

const keyTypes = "application/dtmf-relay, application/dtmf"

// onInfo handles an INFO, which some peers use to send DTMF keys.
func (l *Leg) onInfo(req *sip.Request, tx sip.ServerTransaction) {
	e := l.endpoint
	if len(req.Body()) == 0 { // an empty INFO is a keep-alive
		e.Respond(tx, req, 200, "OK")
		return
	}
	contentType := ""
	if c := req.ContentType(); c != nil {
		contentType = strings.ToLower(token(string(*c)))
	}
	key, valid, supported := parseKey(contentType, string(req.Body()))
	switch {
	case !supported:
		e.Respond(tx, req, 415, "Unsupported Media Type", sip.NewHeader("Accept", keyTypes))
		return
	case !valid:
		e.Respond(tx, req, 400, "Bad Request")
		return
	}
	e.Respond(tx, req, 200, "OK")
	_ = l.session.ReceiveKey(key) // parseKey returns only valid keys
}

// parseKey reads the key of an INFO body. supported is false for content types
// that carry no keys.
func parseKey(contentType, body string) (key rune, valid, supported bool) {
	text := body
	switch contentType {
	case "application/dtmf":
	case "application/dtmf-relay":
		text = ""
		for line := range strings.Lines(body) {
			name, value, ok := strings.Cut(line, "=")
			if ok && strings.EqualFold(strings.TrimSpace(name), "signal") {
				text = value
				break
			}
		}
	default:
		return 0, false, false
	}
	text = strings.ToUpper(strings.TrimSpace(text))
	switch text { // some peers send the event codes of RFC 4733
	case "10":
		text = "*"
	case "11":
		text = "#"
	}
	if len(text) != 1 || !strings.Contains("0123456789*#ABCD", text) {
		return 0, false, true
	}
	return rune(text[0]), true, true
}
