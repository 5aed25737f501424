package sanitize

import (
	"strings"

	"github.com/emiago/sipgo/sip"
)

const sdpType = "application/sdp"

// checkContent refuses a body that cannot be read (RFC 3261 section 8.2.3), and a
// call whose sender could not read ours (section 21.4.7). Content-Language is
// ignored.
func checkContent(req *sip.Request) (Refusal, bool) {
	_, within := req.To().Params.Get("tag")
	offers := req.IsInvite() || req.Method == sip.UPDATE
	if offers && !within && !acceptsSDP(req) {
		return Refusal{Status: 406, Reason: "Not Acceptable"}, false
	}
	if len(req.Body()) == 0 || isOptional(req) {
		return Refusal{}, true
	}
	for _, word := range listElements(req, "content-encoding") {
		if !strings.EqualFold(word, "identity") {
			return Refusal{415, "Unsupported Media Type", []sip.Header{sip.NewHeader("Accept-Encoding", "identity")}}, false
		}
	}
	if kind := req.ContentType(); offers && kind != nil {
		name, _, _ := strings.Cut(string(*kind), ";")
		name = strings.ToLower(strings.TrimSpace(name))
		if name != sdpType && !strings.HasPrefix(name, "multipart/") { // the parts of the body are searched
			return Refusal{415, "Unsupported Media Type", []sip.Header{sip.NewHeader("Accept", sdpType)}}, false
		}
	}
	return Refusal{}, true
}

// acceptsSDP reports whether the sender reads session descriptions; that is the
// default (section 20.1).
func acceptsSDP(req *sip.Request) bool {
	kinds := listElements(req, "accept")
	for _, kind := range kinds {
		switch strings.ToLower(kind) {
		case sdpType, "application/*", "*/*":
			return true
		}
	}
	return len(kinds) == 0
}

// isOptional reports whether the body may be ignored (section 20.11).
func isOptional(req *sip.Request) bool {
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
