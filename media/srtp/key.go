// Package srtp encrypts RTP and RTCP (RFC 3711) with keys exchanged in SDP (RFC 4568).
package srtp

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// Suite is a crypto suite (RFC 4568 section 6.2).
type Suite string

// The suites have RTP authentication tags of different lengths: 10 or 4 bytes.
const (
	Tag80 Suite = "AES_CM_128_HMAC_SHA1_80"
	Tag32 Suite = "AES_CM_128_HMAC_SHA1_32"
)

const (
	keyLen    = 16
	masterLen = keyLen + 14 // length of master key and salt
)

// ErrUnsupported is returned for a crypto attribute that is valid but not supported.
var ErrUnsupported = errors.New("not supported")

// Key is the master key and salt of one direction. The zero Key means that there is no key. A Key is never printed.
type Key struct {
	suite  Suite
	master func() *[masterLen]byte // a function, because fmt would print the data behind a pointer
}

// New returns random local keys: one for each suite, in the order of preference.
func New() []Key {
	keys := []Key{{suite: Tag80}, {suite: Tag32}}
	for i := range keys {
		var b [masterLen]byte
		_, _ = rand.Read(b[:]) // never fails
		keys[i].master = keyFunc(b)
	}
	return keys
}

// Parse parses a crypto attribute without its tag: suite, key and session parameters. Its errors never contain the
// key. Parameters that change the format of packets, such as an MKI, return ErrUnsupported.
func Parse(text string) (Key, error) {
	f := strings.Fields(text)
	if len(f) < 2 {
		return Key{}, errors.New("crypto attribute is incomplete")
	}
	suite := Suite(strings.ToUpper(f[0]))
	if suite != Tag80 && suite != Tag32 {
		return Key{}, fmt.Errorf("suite %.40q: %w", f[0], ErrUnsupported)
	}
	if err := checkParams(f[2:]); err != nil {
		return Key{}, err
	}
	method, info, _ := strings.Cut(f[1], ":")
	if !strings.EqualFold(method, "inline") || strings.Contains(info, ";") {
		return Key{}, fmt.Errorf("key method: %w", ErrUnsupported)
	}
	parts := strings.Split(info, "|")
	for _, p := range parts[1:] {
		if strings.Contains(p, ":") { // a part without a colon is a key lifetime, which no call reaches
			return Key{}, fmt.Errorf("mki: %w", ErrUnsupported)
		}
	}
	b, err := base64.StdEncoding.DecodeString(parts[0])
	if err != nil { // some peers omit the padding
		b, err = base64.RawStdEncoding.DecodeString(parts[0])
	}
	if err != nil || len(b) != masterLen {
		return Key{}, fmt.Errorf("key is not %d bytes in base64", masterLen)
	}
	return Key{suite: suite, master: keyFunc([masterLen]byte(b))}, nil
}

func keyFunc(b [masterLen]byte) func() *[masterLen]byte {
	return func() *[masterLen]byte { return &b }
}

// checkParams accepts only session parameters that have no effect here (RFC 4568 section 6.3).
func checkParams(params []string) error {
	for _, p := range params {
		name, value, _ := strings.Cut(strings.ToUpper(p), "=")
		switch {
		case strings.HasPrefix(name, "-"), name == "WSH", name == "KDR" && value == "0":
		default:
			return fmt.Errorf("session parameter %.20q: %w", name, ErrUnsupported)
		}
	}
	return nil
}

// Suite returns the key's suite.
func (k Key) Suite() Suite { return k.suite }

// IsSet reports whether the Key contains a key.
func (k Key) IsSet() bool { return k.master != nil }

// Equal reports whether two keys are the same.
func (k Key) Equal(o Key) bool {
	return k.suite == o.suite && k.IsSet() == o.IsSet() && (!k.IsSet() || *k.master() == *o.master())
}

// Attribute returns the crypto attribute without its tag. It contains the secret key.
func (k Key) Attribute() string {
	return string(k.suite) + " inline:" + base64.StdEncoding.EncodeToString(k.master()[:])
}

// String implements fmt.Stringer.
func (Key) String() string { return "[key]" }

// GoString implements fmt.GoStringer.
func (Key) GoString() string { return "[key]" }

// LogValue implements slog.LogValuer.
func (Key) LogValue() slog.Value { return slog.StringValue("[key]") }

// MarshalText implements encoding.TextMarshaler. It keeps the key out of JSON.
func (Key) MarshalText() ([]byte, error) { return []byte("[key]"), nil }
