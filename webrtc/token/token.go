// Package token makes and reads what a browser joins its call with: a signed
// word that names the call, until when it is good, and itself, so that it is good
// once. It is a JSON Web Token (RFC 7519) signed by HMAC-SHA-256.
package token

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// Life is how long a token can be joined with.
const Life = time.Minute

// Why a token is refused.
var (
	ErrInvalid = errors.New("the token is not one of ours")
	ErrExpired = errors.New("the token has expired")
)

// audience is what the tokens are for.
const audience = "rtc"

// longest is the longest token that is looked at, in bytes.
const longest = 1024

// A Key signs tokens. All nodes of a deployment have the same.
type Key []byte

// Claims are what a token says.
type Claims struct {
	CallID  string
	ID      string // of the token itself
	Expires time.Time
}

// Hash is how the id of a token is kept: who reads it cannot join by it.
func (c Claims) Hash() []byte {
	sum := sha256.Sum256([]byte(c.ID))
	return sum[:]
}

type claims struct {
	Subject  string `json:"sub"`
	Audience string `json:"aud"`
	Expires  int64  `json:"exp"`
	ID       string `json:"jti"`
}

// header is the same for all tokens: nobody chooses how one is checked.
const header = `{"alg":"HS256","typ":"JWT"}`

// For is what the token of a call says. A call has one token, and it can be made
// again, so it need not be kept.
func (k Key) For(callID string, expires time.Time) Claims {
	return Claims{CallID: callID, ID: encode(k.sum("id " + callID)), Expires: expires.Truncate(time.Second)}
}

// Sign makes the token.
func (k Key) Sign(c Claims) string {
	body, err := json.Marshal(claims{c.CallID, audience, c.Expires.Unix(), c.ID})
	if err != nil {
		return "" // strings and numbers always can be written
	}
	signed := encode([]byte(header)) + "." + encode(body)
	return signed + "." + encode(k.sum(signed))
}

// Read checks a token. The claims of one that has expired are returned too.
func (k Key) Read(token string, now time.Time) (Claims, error) {
	if len(token) > longest {
		return Claims{}, ErrInvalid
	}
	dot := strings.LastIndexByte(token, '.')
	if dot < 0 || subtle.ConstantTimeCompare([]byte(token[dot+1:]), []byte(encode(k.sum(token[:dot])))) != 1 {
		return Claims{}, ErrInvalid
	}
	head, body, _ := strings.Cut(token[:dot], ".")
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || head != encode([]byte(header)) {
		return Claims{}, ErrInvalid
	}
	var c claims
	if err := json.Unmarshal(text, &c); err != nil || c.Audience != audience || c.Subject == "" || c.ID == "" {
		return Claims{}, ErrInvalid
	}
	out := Claims{CallID: c.Subject, ID: c.ID, Expires: time.Unix(c.Expires, 0)}
	if !now.Before(out.Expires) {
		return out, ErrExpired
	}
	return out, nil
}

func (k Key) sum(text string) []byte {
	mac := hmac.New(sha256.New, k)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
