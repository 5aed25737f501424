package sanitize

import (
	"strings"

	"github.com/emiago/sipgo/sip"
)

const (
	maxName = 512 // most bytes of a Call-ID, tag or branch
	maxHops = 255
)

// Rules are the capabilities of a user agent.
type Rules struct {
	// Methods is the value of the Allow header: "INVITE, ACK".
	Methods string
	// Extensions is the value of the Supported header: "timer, 100rel".
	Extensions string
}

// A Refusal is the response to a refused request.
type Refusal struct {
	Status  int // 400 to 699
	Reason  string
	Headers []sip.Header // headers in addition to the usual ones
}

// TrimParams returns a copy of a request without the white space that the library
// leaves in parameters of From and To. The transaction still uses the original.
func TrimParams(req *sip.Request) *sip.Request {
	req = req.Clone()
	if from := req.From(); from != nil {
		trimParams(from.Params)
	}
	if to := req.To(); to != nil {
		trimParams(to.Params)
	}
	return req
}

func trimParams(params sip.HeaderParams) {
	for i, p := range params {
		params[i] = sip.HeaderKV{K: strings.TrimSpace(p.K), V: strings.TrimSpace(p.V)}
	}
}

// Check inspects a request in the order of RFC 3261 section 8.2. ok is false if
// it is refused. A request with an unsupported method passes after the general
// checks. A refused ACK must not be answered.
func (r Rules) Check(req *sip.Request) (v Refusal, ok bool) {
	switch {
	case !strings.EqualFold(req.SipVersion, "SIP/2.0"):
		return Refusal{Status: 505, Reason: "Version Not Supported"}, false
	case !isComplete(req):
		return Refusal{Status: 400, Reason: "Bad Request"}, false
	case !listContains(r.Methods, string(req.Method)):
		return Refusal{}, true
	}
	switch strings.ToLower(req.Recipient.Scheme) {
	case "sip", "sips":
	default:
		return Refusal{Status: 416, Reason: "Unsupported URI Scheme"}, false
	}
	if req.Recipient.Host == "" {
		return Refusal{Status: 400, Reason: "Bad Request"}, false
	}
	// Refusing these methods would break the transaction to which they belong (section 8.2.2.3).
	if req.IsAck() || req.IsCancel() {
		return Refusal{}, true
	}
	if unknown := r.unsupported(req); len(unknown) > 0 {
		return Refusal{420, "Bad Extension", []sip.Header{sip.NewHeader("Unsupported", strings.Join(unknown, ", "))}}, false
	}
	return checkContent(req)
}

// isComplete reports whether a request has every required header once (RFC 3261
// section 8.1.1). It accepts a From without a tag, and requests without
// Max-Forwards or Contact, from older peers (section 12.1.1).
func isComplete(req *sip.Request) bool {
	if req.From() == nil || req.To() == nil || req.CSeq() == nil || req.CallID() == nil || req.Via() == nil {
		return false
	}
	if hops := req.MaxForwards(); hops != nil && hops.Val() > maxHops {
		return false
	}
	return isToken(string(req.Method)) && strings.EqualFold(string(req.CSeq().MethodName), string(req.Method)) &&
		hasNoDuplicates(req) && isValidVia(req.Via()) && hasValidIDs(req)
}

func hasValidIDs(req *sip.Request) bool {
	id := string(*req.CallID())
	return id != "" && isValidID(id) && isValidID(tag(req.From().Params)) && isValidID(tag(req.To().Params))
}

// isValidVia reports whether a response can be sent to the Via.
func isValidVia(via *sip.ViaHeader) bool {
	branch, _ := via.Params.Get("branch")
	return strings.EqualFold(via.ProtocolName, "SIP") && via.ProtocolVersion == "2.0" && via.Host != "" && isValidID(branch)
}

// hasNoDuplicates reports whether single headers occur once and all header names
// are tokens.
func hasNoDuplicates(req *sip.Request) bool {
	seen := map[string]bool{}
	for _, h := range req.Headers() {
		name := canonical(h.Name())
		if !isToken(name) {
			return false
		}
		if isSingle(name) || name == "contact" && isTargetRefresh(req.Method) {
			if seen[name] {
				return false
			}
			seen[name] = true
		}
	}
	return true
}

// isTargetRefresh reports whether the Contact of a request is a remote target, of
// which there must be one (RFC 3261 section 8.1.1.8).
func isTargetRefresh(m sip.RequestMethod) bool {
	switch m {
	case sip.INVITE, sip.UPDATE, sip.SUBSCRIBE, sip.NOTIFY, sip.REFER:
		return true
	default:
		return false
	}
}

// isValidID reports whether an identifier has at most maxName bytes and no white
// space or control characters.
func isValidID(text string) bool {
	return len(text) <= maxName && strings.IndexFunc(text, func(c rune) bool { return c <= ' ' || c == 0x7f }) < 0
}

func tag(params sip.HeaderParams) string { return params.GetOr("tag", "") }

// unsupported returns the required extensions that are not supported.
func (r Rules) unsupported(req *sip.Request) (unknown []string) {
	for _, word := range listElements(req, "require") {
		if !listContains(r.Extensions, word) && isToken(word) {
			unknown = append(unknown, word)
		}
	}
	return unknown
}

func listElements(req *sip.Request, name string) (all []string) {
	for _, h := range req.Headers() {
		if canonical(h.Name()) != name {
			continue
		}
		for word := range strings.SplitSeq(h.Value(), ",") {
			word, _, _ = strings.Cut(word, ";")
			if word = strings.TrimSpace(word); word != "" {
				all = append(all, word)
			}
		}
	}
	return all
}

func listContains(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(strings.TrimSpace(w), word) {
			return true
		}
	}
	return false
}
