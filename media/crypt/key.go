// Package crypt keeps a call's audio secret on the wire: SRTP and SRTCP (RFC
// 3711) under keys that the two sides tell each other in SDP (RFC 4568).
package crypt

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// A Suite says how packets are encrypted and authenticated (RFC 4568 section
// 6.2).
type Suite string

// Suites. They differ in how long the tag of an RTP packet is: 10 bytes or 4.
const (
	Tag80 Suite = "AES_CM_128_HMAC_SHA1_80"
	Tag32 Suite = "AES_CM_128_HMAC_SHA1_32"
)

const (
	keyLen    = 16
	masterLen = keyLen + 14 // key and salt
)

// ErrUnknown is returned for what other sides may offer and is not spoken here.
var ErrUnknown = errors.New("not spoken here")

// A Key is the master key and salt of one direction. The zero Key is none. It
// never prints.
type Key struct {
	suite  Suite
	master func() *[masterLen]byte // a function, for what is in a pointer may print
}

// New returns random keys of our own, one a suite, the preferred first.
func New() []Key {
	keys := []Key{{suite: Tag80}, {suite: Tag32}}
	for i := range keys {
		var b [masterLen]byte
		_, _ = rand.Read(b[:]) // never fails
		keys[i].master = hidden(b)
	}
	return keys
}

// Parse reads what stands after the tag of a crypto attribute: suite, key and
// session parameters. Its errors say nothing of the key. What changes the
// format of packets, such as an MKI, is ErrUnknown.
func Parse(text string) (Key, error) {
	f := strings.Fields(text)
	if len(f) < 2 {
		return Key{}, errors.New("crypto is cut short")
	}
	suite := Suite(strings.ToUpper(f[0]))
	if suite != Tag80 && suite != Tag32 {
		return Key{}, fmt.Errorf("suite %.40q: %w", f[0], ErrUnknown)
	}
	if err := checkParams(f[2:]); err != nil {
		return Key{}, err
	}
	method, info, _ := strings.Cut(f[1], ":")
	if !strings.EqualFold(method, "inline") || strings.Contains(info, ";") {
		return Key{}, fmt.Errorf("key method: %w", ErrUnknown)
	}
	parts := strings.Split(info, "|")
	for _, p := range parts[1:] {
		if strings.Contains(p, ":") { // the rest is a lifetime, which no call outlasts
			return Key{}, fmt.Errorf("mki: %w", ErrUnknown)
		}
	}
	b, err := base64.StdEncoding.DecodeString(parts[0])
	if err != nil { // some write no padding
		b, err = base64.RawStdEncoding.DecodeString(parts[0])
	}
	if err != nil || len(b) != masterLen {
		return Key{}, fmt.Errorf("key is not %d bytes in base64", masterLen)
	}
	return Key{suite: suite, master: hidden([masterLen]byte(b))}, nil
}

func hidden(b [masterLen]byte) func() *[masterLen]byte {
	return func() *[masterLen]byte { return &b }
}

// checkParams accepts the session parameters that change nothing here (RFC
// 4568 section 6.3).
func checkParams(params []string) error {
	for _, p := range params {
		name, value, _ := strings.Cut(strings.ToUpper(p), "=")
		switch {
		case strings.HasPrefix(name, "-"), name == "WSH", name == "KDR" && value == "0":
		default:
			return fmt.Errorf("session parameter %.20q: %w", name, ErrUnknown)
		}
	}
	return nil
}

// Suite is how the key is used.
func (k Key) Suite() Suite { return k.suite }

// Set says that there is a key.
func (k Key) Set() bool { return k.master != nil }

// Equal says that two keys are the same.
func (k Key) Equal(o Key) bool {
	return k.suite == o.suite && k.Set() == o.Set() && (!k.Set() || *k.master() == *o.master())
}

// Attribute is what stands after the tag of the crypto attribute that tells
// the key. It is a secret.
func (k Key) Attribute() string {
	return string(k.suite) + " inline:" + base64.StdEncoding.EncodeToString(k.master()[:])
}

// String implements fmt.Stringer.
func (Key) String() string { return "[key]" }

// GoString implements fmt.GoStringer.
func (Key) GoString() string { return "[key]" }

// LogValue implements slog.LogValuer.
func (Key) LogValue() slog.Value { return slog.StringValue("[key]") }

// MarshalText keeps a key out of JSON.
func (Key) MarshalText() ([]byte, error) { return []byte("[key]"), nil }
