package guard

import (
	"strings"

	"github.com/emiago/sipgo/sip"
)

// sdpType is the body that a call is described by.
const sdpType = "application/sdp"

// content refuses a body that cannot be read (RFC 3261 section 8.2.3), and a
// call whose caller could not read ours (section 21.4.7). In what language a
// body is does not matter.
func content(req *sip.Request) (Verdict, bool) {
	_, within := req.To().Params.Get("tag")
	offers := req.IsInvite() || req.Method == sip.UPDATE
	if offers && !within && !accepted(req) {
		return Verdict{Status: 406, Reason: "Not Acceptable"}, false
	}
	if len(req.Body()) == 0 || optional(req) {
		return Verdict{}, true
	}
	for _, word := range words(req, "content-encoding") {
		if !strings.EqualFold(word, "identity") {
			return Verdict{415, "Unsupported Media Type", []sip.Header{sip.NewHeader("Accept-Encoding", "identity")}}, false
		}
	}
	if kind := req.ContentType(); offers && kind != nil {
		name, _, _ := strings.Cut(string(*kind), ";")
		name = strings.ToLower(strings.TrimSpace(name))
		if name != sdpType && !strings.HasPrefix(name, "multipart/") { // its parts are looked through
			return Verdict{415, "Unsupported Media Type", []sip.Header{sip.NewHeader("Accept", sdpType)}}, false
		}
	}
	return Verdict{}, true
}

// accepted says whether the sender reads session descriptions. Who does not
// say so does (section 20.1).
func accepted(req *sip.Request) bool {
	kinds := words(req, "accept")
	for _, kind := range kinds {
		switch strings.ToLower(kind) {
		case sdpType, "application/*", "*/*":
			return true
		}
	}
	return len(kinds) == 0
}

// optional says whether a body may be left unread (section 20.11).
func optional(req *sip.Request) bool {
	for _, h := range req.Headers() {
		if canonical(h.Name()) != "content-disposition" {
			continue
		}
		_, params, _ := strings.Cut(strings.ToLower(h.Value()), ";")
		for p := range strings.SplitSeq(params, ";") {
			name, value, _ := strings.Cut(p, "=")
			if strings.TrimSpace(name) == "handling" {
				return strings.TrimSpace(value) == "optional"
			}
		}
	}
	return false
}
