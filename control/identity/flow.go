package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"time"
)

// Flow is one sign-in. The browser keeps it, signed, while the person is at the provider.
type Flow struct {
	State, Nonce, Verifier string
	Next                   string
	Until                  int64 // seconds since 1970
}

func (p *Provider) sum(text string) []byte {
	h := hmac.New(sha256.New, p.Key)
	h.Write([]byte("identity flow\x00" + text))
	return h.Sum(nil)
}

func (p *Provider) seal(f Flow) string {
	text, _ := json.Marshal(f) //nolint:errchkjson // strings and a number
	body := base64.RawURLEncoding.EncodeToString(text)
	return body + "." + base64.RawURLEncoding.EncodeToString(p.sum(body))
}

// Open returns the flow that the browser kept, if the provider's redirect with this query belongs to it.
func (p *Provider) Open(kept string, query url.Values) (Flow, error) {
	var f Flow
	body, sum, _ := strings.Cut(kept, ".")
	given, err := base64.RawURLEncoding.DecodeString(sum)
	if err != nil || !hmac.Equal(given, p.sum(body)) {
		return f, refuse("this browser has not started a sign-in")
	}
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	switch {
	case err != nil:
		return f, refuse("this browser has not started a sign-in")
	case time.Now().Unix() > f.Until:
		return f, refuse("the sign-in took too long")
	case subtle.ConstantTimeCompare([]byte(f.State), []byte(query.Get("state"))) != 1:
		return f, refuse("the redirect belongs to another sign-in")
	case query.Has("iss") && query.Get("iss") != p.Issuer: // RFC 9207
		return f, refuse("the redirect is from another provider")
	}
	return f, nil
}
