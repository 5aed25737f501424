// Package auth answers digest challenges (RFC 3261 section 22, RFC 7616, RFC
// 8760).
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

// A Challenge is a digest challenge.
type Challenge struct {
	Realm, Nonce, Opaque string
	Algorithm            string // "MD5" or "SHA-256"
	QOP                  bool   // the challenge offers qop=auth; otherwise RFC 2069 applies
	Stale                bool
	hasAlgorithm         bool // the challenge named its algorithm
}

// Parse reads a WWW-Authenticate or Proxy-Authenticate header.
func Parse(value string) (Challenge, error) {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(value), " ")
	if !strings.EqualFold(scheme, "Digest") {
		return Challenge{}, errors.New("challenge is not Digest")
	}
	params, err := parseParams(rest)
	if err != nil {
		return Challenge{}, err
	}
	c := Challenge{
		Realm: params["realm"], Nonce: params["nonce"], Opaque: params["opaque"],
		Algorithm: "MD5", Stale: strings.EqualFold(params["stale"], "true"),
	}
	if a, ok := params["algorithm"]; ok {
		c.Algorithm, c.hasAlgorithm = strings.ToUpper(a), true
	}
	if c.Algorithm != "MD5" && c.Algorithm != "SHA-256" {
		return Challenge{}, fmt.Errorf("challenge has an algorithm other than MD5 and SHA-256")
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

// parseParams reads name=value pairs; values may be quoted.
func parseParams(text string) (map[string]string, error) {
	params := map[string]string{}
	for text = strings.TrimLeft(text, " \t,"); text != ""; text = strings.TrimLeft(text, " \t,") {
		name, rest, ok := strings.Cut(text, "=")
		if !ok {
			return nil, errors.New("challenge is not name=value")
		}
		rest = strings.TrimLeft(rest, " \t")
		var value string
		if strings.HasPrefix(rest, `"`) {
			end := closingQuote(rest)
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

// closingQuote returns the end of the quoted string at the beginning of text, or
// -1.
func closingQuote(text string) int {
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

// Answer returns the value of the Authorization or Proxy-Authorization header.
// count numbers the requests with this nonce, from 1. Quoted values go back
// unchanged, with their escapes.
func (c Challenge) Answer(username, password, method, uri string, count uint32) (string, error) {
	if strings.ContainsAny(username, "\"\\") {
		return "", errors.New("username must not contain a quote or a backslash")
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
	if c.hasAlgorithm {
		b.WriteString(", algorithm=" + c.Algorithm)
	}
	if c.Opaque != "" {
		fmt.Fprintf(&b, `, opaque="%s"`, c.Opaque)
	}
	return b.String()
}

// Verify reports whether an Authorization header answers the challenge. siptest
// uses it.
func (c Challenge) Verify(value, username, password, method string) bool {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(value), " ")
	params, err := parseParams(rest)
	if err != nil || !strings.EqualFold(scheme, "Digest") || params["username"] != username ||
		params["realm"] != c.Realm || params["nonce"] != c.Nonce {
		return false
	}
	answer := c.answer(username, password, method, params["uri"], params["cnonce"], params["nc"])
	want, err := parseParams(strings.TrimPrefix(answer, "Digest "))
	return err == nil && want["response"] == params["response"]
}
