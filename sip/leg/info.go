package leg

import (
	"strings"

	"github.com/emiago/sipgo/sip"
)

// keyTypes are the bodies of an INFO that tell a pressed key.
const keyTypes = "application/dtmf-relay, application/dtmf"

// info takes an INFO, which some peers tell pressed keys by.
func (l *Leg) info(req *sip.Request, tx sip.ServerTransaction) {
	e := l.endpoint
	switch {
	case !l.dialog.Receive(req.CSeq().SeqNo):
		e.Respond(tx, req, 500, "Out Of Order")
		return
	case len(req.Body()) == 0: // a sign of life
		e.Respond(tx, req, 200, "OK")
		return
	}
	kind := ""
	if c := req.ContentType(); c != nil {
		kind = strings.ToLower(token(string(*c)))
	}
	key, told, known := pressed(kind, string(req.Body()))
	switch {
	case !known:
		e.Respond(tx, req, 415, "Unsupported Media Type", sip.NewHeader("Accept", keyTypes))
		return
	case !told:
		e.Respond(tx, req, 400, "Bad Request")
		return
	}
	e.Respond(tx, req, 200, "OK")
	_ = l.session.Key(key) // pressed knows no others
}

// pressed reads the key that a body tells. known says that its type can tell
// one.
func pressed(kind, body string) (key rune, told, known bool) {
	text := body
	switch kind {
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
	switch text { // some number the keys as RFC 4733 does
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
