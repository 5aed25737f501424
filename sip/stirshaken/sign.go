// Package stirshaken attests caller numbers: it writes and reads the Identity
// header (RFC 8224) with a PASSporT (RFC 8225) and the shaken extension (RFC
// 8588).
package stirshaken

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// A Level is a level of attestation (RFC 8588 section 4).
type Level string

// Levels.
const (
	Full    Level = "A" // the caller is known and may use the number
	Partial Level = "B" // the caller is known
	Gateway Level = "C" // the call came from another network
	None    Level = ""  // the call is not signed
)

// A Signer signs calls. Its methods are safe for concurrent use; its fields must
// not change.
type Signer struct {
	// Key uses the curve P-256.
	Key *ecdsa.PrivateKey
	// X5U is the https URL of the certificate.
	X5U string
	// Attest returns the level for a caller number; nil means None.
	Attest func(from string) Level
	// OrigID is the UUID for tracing the origin; if empty, each call has its own.
	OrigID string
	// Dialed removes a trunk's dialing prefixes from a number; nil leaves it
	// unchanged.
	Dialed func(to string) string
}

// Sign returns the value of an Identity header for a call. It returns "" if the
// caller is not attested, or if from or to is not a phone number.
func (s *Signer) Sign(from, to string, at time.Time) (string, error) {
	level := None
	if s.Attest != nil {
		level = s.Attest(from)
	}
	if level == None {
		return "", nil
	}
	if s.Dialed != nil {
		to = s.Dialed(to)
	}
	orig, isNumber := Canonical(from)
	dest, alsoNumber := Canonical(to)
	if !isNumber || !alsoNumber {
		return "", nil
	}
	if err := s.check(level); err != nil {
		return "", err
	}
	id := s.OrigID
	if id == "" {
		id = newUUID()
	}
	c := claims{Attest: level, Dest: destination{TN: []string{dest}}, IAT: at.Unix(), Orig: origin{TN: orig}, OrigID: id}
	token, err := sign(s.Key, header{Alg: algorithm, PPT: extension, Typ: passport, X5U: s.X5U}, c)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s;info=<%s>;alg=%s;ppt=%s", token, s.X5U, algorithm, extension), nil
}

func (s *Signer) check(level Level) error {
	switch {
	case level != Full && level != Partial && level != Gateway:
		return fmt.Errorf("sign caller ID: attestation %q, want A, B or C", level)
	case s.Key == nil || s.Key.Curve != elliptic.P256():
		return errors.New("sign caller ID: the key is not a P-256 key")
	case s.OrigID != "" && !isUUID(s.OrigID):
		return errors.New("sign caller ID: origid is not a UUID")
	}
	return CheckURL(s.X5U)
}

// CheckURL returns an error if text is not the URL of a certificate.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || strings.ContainsAny(text, "<>\"\\ ") || len(text) > maxURL {
		return errors.New("the certificate's URL: want https://host/path")
	}
	return nil
}

// Canonical returns the digits of a phone number, as they are signed (RFC 8224
// section 8.3). ok is false if it is not a phone number.
func Canonical(number string) (digits string, ok bool) {
	var b strings.Builder
	for i, c := range number {
		switch {
		case c >= '0' && c <= '9':
			b.WriteRune(c)
		case c == '+' && i == 0, strings.ContainsRune("-.() ", c):
		default:
			return "", false
		}
	}
	return b.String(), b.Len() > 0 && b.Len() <= maxDigits
}

// sign returns the full form of a PASSporT (RFC 8225 section 7).
func sign(key *ecdsa.PrivateKey, h header, c claims) (string, error) {
	input, err := serialize(h, c)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(input))
	r, v, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		return "", fmt.Errorf("sign caller ID: %w", err)
	}
	var raw [64]byte // RFC 7518 section 3.4
	r.FillBytes(raw[:32])
	v.FillBytes(raw[32:])
	return input + "." + encoding.EncodeToString(raw[:]), nil
}

// newUUID returns a random UUID (RFC 9562 section 5.4).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // reading random bytes never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func isUUID(text string) bool {
	for i, c := range text {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (c == '-') || !dash && !strings.ContainsRune("0123456789abcdefABCDEF", c) {
			return false
		}
	}
	return len(text) == 36
}
