package signaling

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

// TokenLifetime is how long a token can be used to join.
const TokenLifetime = time.Minute

// Reasons why a token is refused.
var (
	ErrInvalidToken = errors.New("the token is not valid")
	ErrExpiredToken = errors.New("the token has expired")
)

// tokenAudience is the aud claim of every token.
const tokenAudience = "rtc"

// maxTokenLen is the maximum length of an accepted token in bytes.
const maxTokenLen = 1024

// A TokenKey creates and verifies the tokens with which browsers join calls: JSON Web Tokens (RFC 7519) signed with
// HMAC-SHA-256. A token contains its call, its expiry, and an ID so that it can be used only once. All nodes of a
// deployment share the key.
type TokenKey []byte

// Claims are the contents of a token.
type Claims struct {
	CallID  string
	ID      string // ID of the token
	Expires time.Time
}

// Hash returns the form in which a token's ID is stored. The hash cannot be used to join.
func (c Claims) Hash() []byte {
	sum := sha256.Sum256([]byte(c.ID))
	return sum[:]
}

type jwtClaims struct {
	Subject  string `json:"sub"`
	Audience string `json:"aud"`
	Expires  int64  `json:"exp"`
	ID       string `json:"jti"`
}

// tokenHeader is fixed, so that a token cannot choose its algorithm.
const tokenHeader = `{"alg":"HS256","typ":"JWT"}` //nolint:gosec // no credential

// NewClaims returns the claims of a call's token. The same arguments give the same claims, so the token need not be
// stored.
func (k TokenKey) NewClaims(callID string, expires time.Time) Claims {
	return Claims{CallID: callID, ID: encode(k.sum("id " + callID)), Expires: expires.Truncate(time.Second)}
}

// Sign returns the token.
func (k TokenKey) Sign(c Claims) string {
	body, err := json.Marshal(jwtClaims{c.CallID, tokenAudience, c.Expires.Unix(), c.ID})
	if err != nil {
		return "" // cannot happen: strings and numbers always marshal
	}
	signed := encode([]byte(tokenHeader)) + "." + encode(body)
	return signed + "." + encode(k.sum(signed))
}

// Verify checks a token. With ErrExpiredToken it also returns the claims.
func (k TokenKey) Verify(token string, now time.Time) (Claims, error) {
	if len(token) > maxTokenLen {
		return Claims{}, ErrInvalidToken
	}
	dot := strings.LastIndexByte(token, '.')
	if dot < 0 || subtle.ConstantTimeCompare([]byte(token[dot+1:]), []byte(encode(k.sum(token[:dot])))) != 1 {
		return Claims{}, ErrInvalidToken
	}
	head, body, _ := strings.Cut(token[:dot], ".")
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || head != encode([]byte(tokenHeader)) {
		return Claims{}, ErrInvalidToken
	}
	var c jwtClaims
	if err := json.Unmarshal(text, &c); err != nil || c.Audience != tokenAudience || c.Subject == "" || c.ID == "" {
		return Claims{}, ErrInvalidToken
	}
	out := Claims{CallID: c.Subject, ID: c.ID, Expires: time.Unix(c.Expires, 0)}
	if !now.Before(out.Expires) {
		return out, ErrExpiredToken
	}
	return out, nil
}

func (k TokenKey) sum(text string) []byte {
	mac := hmac.New(sha256.New, k)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
