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

	"github.com/parley-voice/parley/control/operator"
)

// Flow is one sign-in. The browser keeps it, signed, while the person is at the provider.
type Flow struct {
	State, Nonce, Verifier string
	Next                   string
	Until                  int64 // seconds since 1970
}

// link is a verified person whose account has a password that must be entered once.
type link struct {
	Person operator.Person
	Email  string
	Until  int64 // seconds since 1970
}

// Purposes of what the browser keeps. A text that was signed for one is not valid for another.
const (
	forFlow = "identity flow"
	forLink = "identity link"
)

func (p *Provider) sum(purpose, text string) []byte {
	h := hmac.New(sha256.New, p.Key)
	h.Write([]byte(purpose + "\x00" + text))
	return h.Sum(nil)
}

func (p *Provider) seal(purpose string, v any) string {
	text, _ := json.Marshal(v) //nolint:errchkjson // strings and a number
	body := base64.RawURLEncoding.EncodeToString(text)
	return body + "." + base64.RawURLEncoding.EncodeToString(p.sum(purpose, body))
}

// unseal reads what seal returned, and reports whether it is authentic.
func (p *Provider) unseal(purpose, kept string, v any) bool {
	body, sum, _ := strings.Cut(kept, ".")
	given, err := base64.RawURLEncoding.DecodeString(sum)
	if err != nil || !hmac.Equal(given, p.sum(purpose, body)) {
		return false
	}
	text, err := base64.RawURLEncoding.DecodeString(body)
	return err == nil && json.Unmarshal(text, v) == nil
}

// Link returns a text that proves, for as long as a sign-in may take, that the provider has verified the person.
func (p *Provider) Link(who Identity) string {
	return p.seal(forLink, link{who.Person, who.Email, time.Now().Add(flowLife).Unix()})
}

// OpenLink returns the person and the address of a text of Link.
func (p *Provider) OpenLink(text string) (operator.Person, string, error) {
	var l link
	switch {
	case !p.unseal(forLink, text, &l) || l.Person.Issuer != p.Issuer:
		return operator.Person{}, "", refuse("this browser has not started a sign-in")
	case time.Now().Unix() > l.Until:
		return operator.Person{}, "", refuse("the sign-in took too long")
	}
	return l.Person, l.Email, nil
}

// Open returns the flow that the browser kept, if the provider's redirect with this query belongs to it.
func (p *Provider) Open(kept string, query url.Values) (Flow, error) {
	var f Flow
	switch {
	case !p.unseal(forFlow, kept, &f):
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
