// Package token creates and verifies the tokens with which browsers join
// calls. A token names its call, its expiry and its own ID, which makes it
// usable once. It is a JSON Web Token (RFC 7519) signed with HMAC-SHA-256.
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

// Lifetime is how long a token can be used to join.
const Lifetime = time.Minute

// Reasons why a token is refused.
var (
	ErrInvalid = errors.New("the token is not valid")
	ErrExpired = errors.New("the token has expired")
)

// audience is the aud claim of every token.
const audience = "rtc"

// longest is the longest accepted token in bytes.
const longest = 1024

// A Key signs tokens. All nodes of a deployment share it.
type Key []byte

// Claims are the contents of a token.
type Claims struct {
	CallID  string
	ID      string // of the token
	Expires time.Time
}

// Hash returns the stored form of a token's ID, which cannot be used to join.
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

// header is fixed, so that a token cannot choose its algorithm.
const header = `{"alg":"HS256","typ":"JWT"}`

// NewClaims returns the claims of a call's token. They are deterministic, so
// the token need not be stored.
func (k Key) NewClaims(callID string, expires time.Time) Claims {
	return Claims{CallID: callID, ID: encode(k.sum("id " + callID)), Expires: expires.Truncate(time.Second)}
}

// Sign returns the token.
func (k Key) Sign(c Claims) string {
	body, err := json.Marshal(claims{c.CallID, audience, c.Expires.Unix(), c.ID})
	if err != nil {
		return "" // cannot happen: strings and numbers always marshal
	}
	signed := encode([]byte(header)) + "." + encode(body)
	return signed + "." + encode(k.sum(signed))
}

// Verify checks a token. With ErrExpired it also returns the claims.
func (k Key) Verify(token string, now time.Time) (Claims, error) {
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
