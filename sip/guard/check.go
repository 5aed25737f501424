package guard

import (
	"strings"

	"github.com/emiago/sipgo/sip"
)

const (
	maxName = 512 // bytes of a Call-ID or a tag
	maxHops = 255
)

// Rules are what a user agent speaks.
type Rules struct {
	// Methods are those of the Allow header: "INVITE, ACK".
	Methods string
	// Extensions are those of the Supported header: "timer, 100rel".
	Extensions string
}

// A Verdict is how a request is refused.
type Verdict struct {
	Status  int // 400 to 699
	Reason  string
	Headers []sip.Header // beside those that every response has
}

// Tidy returns a copy of a request without the white space that may stand around
// the parameters of From and To and that the library leaves there. The request
// itself is its transaction's, which reads it when it answers 100.
func Tidy(req *sip.Request) *sip.Request {
	req = req.Clone()
	if from := req.From(); from != nil {
		tidy(from.Params)
	}
	if to := req.To(); to != nil {
		tidy(to.Params)
	}
	return req
}

func tidy(params sip.HeaderParams) {
	for i, p := range params {
		params[i] = sip.HeaderKV{K: strings.TrimSpace(p.K), V: strings.TrimSpace(p.V)}
	}
}

// Check is the order of RFC 3261 section 8.2: what is no whole request of our
// version is refused first; then what a method that is spoken asks for and is
// not there. A method that is not spoken passes, for another to answer it. ok
// is false where the request is refused. An ACK that is refused must not be
// answered.
func (r Rules) Check(req *sip.Request) (v Verdict, ok bool) {
	switch {
	case !strings.EqualFold(req.SipVersion, "SIP/2.0"):
		return Verdict{Status: 505, Reason: "Version Not Supported"}, false
	case !whole(req):
		return Verdict{Status: 400, Reason: "Bad Request"}, false
	case !holds(r.Methods, string(req.Method)):
		return Verdict{}, true
	}
	switch strings.ToLower(req.Recipient.Scheme) {
	case "sip", "sips":
	default:
		return Verdict{Status: 416, Reason: "Unsupported URI Scheme"}, false
	}
	if req.Recipient.Host == "" {
		return Verdict{Status: 400, Reason: "Bad Request"}, false
	}
	// Neither can be refused without breaking what it belongs to (section 8.2.2.3).
	if req.IsAck() || req.IsCancel() {
		return Verdict{}, true
	}
	if unknown := r.required(req); len(unknown) > 0 {
		return Verdict{420, "Bad Extension", []sip.Header{sip.NewHeader("Unsupported", strings.Join(unknown, ", "))}}, false
	}
	return content(req)
}

// whole says whether a request has what every request must have, once (RFC
// 3261 section 8.1.1). A From without a tag, a request without Max-Forwards and
// an INVITE without Contact are those of older peers (section 12.1.1); who takes
// a call knows whether it can be without.
func whole(req *sip.Request) bool {
	if req.From() == nil || req.To() == nil || req.CSeq() == nil || req.CallID() == nil || req.Via() == nil {
		return false
	}
	if hops := req.MaxForwards(); hops != nil && hops.Val() > maxHops {
		return false
	}
	return isToken(string(req.Method)) && strings.EqualFold(string(req.CSeq().MethodName), string(req.Method)) &&
		once(req) && spoken(req.Via()) && identified(req)
}

// identified says whether what names a dialog can be a name.
func identified(req *sip.Request) bool {
	id := string(*req.CallID())
	return id != "" && named(id) && named(tag(req.From().Params)) && named(tag(req.To().Params))
}

// spoken says whether the next hop to the sender can be answered.
func spoken(via *sip.ViaHeader) bool {
	branch, _ := via.Params.Get("branch")
	return strings.EqualFold(via.ProtocolName, "SIP") && via.ProtocolVersion == "2.0" && via.Host != "" && named(branch)
}

// once says whether every header that may come once does, and that all are
// named by tokens.
func once(req *sip.Request) bool {
	seen := map[string]bool{}
	for _, h := range req.Headers() {
		name := canonical(h.Name())
		if !isToken(name) {
			return false
		}
		if single(name) || name == "contact" && targets(req.Method) {
			if seen[name] {
				return false
			}
			seen[name] = true
		}
	}
	return true
}

// targets says whether the Contact of a request is where the dialog goes on,
// which can be one place only (RFC 3261 section 8.1.1.8).
func targets(m sip.RequestMethod) bool {
	switch m {
	case sip.INVITE, sip.UPDATE, sip.SUBSCRIBE, sip.NOTIFY, sip.REFER:
		return true
	default:
		return false
	}
}

// named says whether a text is short enough for a name, and without white
// space and control characters.
func named(text string) bool {
	return len(text) <= maxName && strings.IndexFunc(text, func(c rune) bool { return c <= ' ' || c == 0x7f }) < 0
}

func tag(params sip.HeaderParams) string {
	t, _ := params.Get("tag")
	return t
}

// required is what a request requires and is not spoken.
func (r Rules) required(req *sip.Request) (unknown []string) {
	for _, word := range words(req, "require") {
		if !holds(r.Extensions, word) && isToken(word) {
			unknown = append(unknown, word)
		}
	}
	return unknown
}

// words are the elements of a header that may be a list, without parameters.
func words(req *sip.Request, name string) (all []string) {
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

// holds says whether a list, "a, b", holds a word.
func holds(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(strings.TrimSpace(w), word) {
			return true
		}
	}
	return false
}
