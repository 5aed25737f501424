// Package auth answers the digest challenges of a trunk (RFC 3261 section 22,
// RFC 7616, RFC 8760), and of nobody else.
package auth

import (
	"crypto/md5" //nolint:gosec // the algorithm of most trunks
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Challenge is what a server wants to be proved, and how.
type Challenge struct {
	Realm, Nonce, Opaque string
	Algorithm            string // "MD5" or "SHA-256"
	QOP                  bool   // auth is offered; else RFC 2069 is meant
	Stale                bool
	named                bool // the algorithm was spelled out
}

// Parse reads the value of a WWW-Authenticate or Proxy-Authenticate header.
func Parse(value string) (Challenge, error) {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(value), " ")
	if !strings.EqualFold(scheme, "Digest") {
		return Challenge{}, errors.New("challenge is not Digest")
	}
	params, err := split(rest)
	if err != nil {
		return Challenge{}, err
	}
	c := Challenge{
		Realm: params["realm"], Nonce: params["nonce"], Opaque: params["opaque"],
		Algorithm: "MD5", Stale: strings.EqualFold(params["stale"], "true"),
	}
	if a, ok := params["algorithm"]; ok {
		c.Algorithm, c.named = strings.ToUpper(a), true
	}
	if c.Algorithm != "MD5" && c.Algorithm != "SHA-256" {
		return Challenge{}, fmt.Errorf("challenge wants an algorithm other than MD5 and SHA-256")
	}
	if c.Nonce == "" || c.Realm == "" {
		return Challenge{}, errors.New("challenge without realm or nonce")
	}
	if qop, ok := params["qop"]; ok {
		c.QOP = slices.ContainsFunc(strings.Split(qop, ","), func(q string) bool {
			return strings.EqualFold(strings.TrimSpace(q), "auth")
		})
		if !c.QOP {
			return Challenge{}, errors.New("challenge without qop auth")
		}
	}
	return c, nil
}

// split reads name=value pairs, whose values may be quoted.
func split(text string) (map[string]string, error) {
	params := map[string]string{}
	for text = strings.TrimLeft(text, " \t,"); text != ""; text = strings.TrimLeft(text, " \t,") {
		name, rest, ok := strings.Cut(text, "=")
		if !ok {
			return nil, errors.New("challenge is not name=value")
		}
		rest = strings.TrimLeft(rest, " \t")
		var value string
		if strings.HasPrefix(rest, `"`) {
			end := closing(rest)
			if end < 0 {
				return nil, errors.New("challenge has an open quote")
			}
			value, text = rest[1:end], rest[end+1:]
		} else {
			value, text, _ = strings.Cut(rest, ",")
			if value = strings.TrimSpace(value); strings.ContainsAny(value, "\"\\ \t") {
				return nil, errors.New("challenge has a value that is neither a token nor quoted")
			}
		}
		params[strings.ToLower(strings.TrimSpace(name))] = value
	}
	return params, nil
}

// closing is where the quoted string at the beginning of text ends.
func closing(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// Answer is the value of the Authorization or Proxy-Authorization header for a
// request, the count'th that answers this nonce. Quoted values go back as they
// came, escapes included.
func (c Challenge) Answer(username, password, method, uri string, count uint32) (string, error) {
	if strings.ContainsAny(username, "\"\\") {
		return "", errors.New("username holds a quote or a backslash")
	}
	var raw [16]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return "", fmt.Errorf("digest: %w", err)
	}
	return c.answer(username, password, method, uri, hex.EncodeToString(raw[:]), fmt.Sprintf("%08x", count)), nil
}

func (c Challenge) answer(username, password, method, uri, cnonce, count string) string {
	fresh := md5.New
	if c.Algorithm == "SHA-256" {
		fresh = sha256.New
	}
	h := fresh()
	sum := func(parts ...string) string {
		h.Reset()
		_, _ = h.Write([]byte(strings.Join(parts, ":")))
		return hex.EncodeToString(h.Sum(nil))
	}
	a1, a2 := sum(username, c.Realm, password), sum(method, uri)
	var b strings.Builder
	fmt.Fprintf(&b, `Digest username="%s", realm="%s", nonce="%s", uri="%s"`, username, c.Realm, c.Nonce, uri)
	if c.QOP {
		fmt.Fprintf(&b, `, response="%s", cnonce="%s", qop=auth, nc=%s`, sum(a1, c.Nonce, count, cnonce, "auth", a2), cnonce, count)
	} else {
		fmt.Fprintf(&b, `, response="%s"`, sum(a1, c.Nonce, a2))
	}
	if c.named {
		b.WriteString(", algorithm=" + c.Algorithm)
	}
	if c.Opaque != "" {
		fmt.Fprintf(&b, `, opaque="%s"`, c.Opaque)
	}
	return b.String()
}

// Verify says whether the value of an Authorization header answers the
// challenge for a request. A server that plays a carrier uses it.
func (c Challenge) Verify(value, username, password, method string) bool {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(value), " ")
	params, err := split(rest)
	if err != nil || !strings.EqualFold(scheme, "Digest") || params["username"] != username ||
		params["realm"] != c.Realm || params["nonce"] != c.Nonce {
		return false
	}
	want, err := split(strings.TrimPrefix(c.answer(username, password, method, params["uri"], params["cnonce"], params["nc"]), "Digest "))
	return err == nil && want["response"] == params["response"]
}
