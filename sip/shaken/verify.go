package shaken

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// ErrSignature is returned where a signature is not that of the key.
var ErrSignature = errors.New("the signature is not that of the key")

// A Passport is what an Identity header vouches for. It is worth nothing until
// Verify has returned nil.
type Passport struct {
	Attest Level
	From   string   // digits
	To     []string // digits
	At     time.Time
	OrigID string
	X5U    string // where the certificate is said to be

	input     string
	signature []byte
}

// Parse reads the value of an Identity header, in its full form (RFC 8224
// section 4.1). Its error says what is wrong and holds nothing of the value.
func Parse(identity string) (Passport, error) {
	if len(identity) > maxIdentity {
		return Passport{}, errors.New("identity: too long")
	}
	token, params, _ := strings.Cut(strings.TrimSpace(identity), ";")
	parts := strings.Split(strings.TrimSpace(token), ".")
	if len(parts) != 3 {
		return Passport{}, errors.New("identity: want three parts")
	}
	var h header
	var c claims
	if err := read(parts[0], &h); err != nil {
		return Passport{}, fmt.Errorf("identity: header: %w", err)
	}
	if err := read(parts[1], &c); err != nil {
		return Passport{}, fmt.Errorf("identity: claims: %w", err)
	}
	signature, err := encoding.DecodeString(parts[2])
	if err != nil || len(signature) != 64 {
		return Passport{}, errors.New("identity: signature is not of 64 bytes")
	}
	if h.Alg != algorithm || h.PPT != extension || h.Typ != passport {
		return Passport{}, errors.New("identity: not a shaken passport of ES256")
	}
	if err := checkParams(params, h.X5U); err != nil {
		return Passport{}, err
	}
	if err := CheckURL(h.X5U); err != nil {
		return Passport{}, fmt.Errorf("identity: %w", err)
	}
	return Passport{
		Attest: c.Attest, From: c.Orig.TN, To: c.Dest.TN, At: time.Unix(c.IAT, 0), OrigID: c.OrigID, X5U: h.X5U,
		input: parts[0] + "." + parts[1], signature: signature,
	}, checkClaims(c)
}

// Verify says whether a passport is signed by the holder of key, at a time that
// is no further from now than fresh.
func (p Passport) Verify(key *ecdsa.PublicKey, now time.Time, fresh time.Duration) error {
	if !signed(key, p.input, p.signature) {
		return ErrSignature
	}
	if d := now.Sub(p.At); d > fresh || d < -fresh {
		return errors.New("the passport is stale")
	}
	return nil
}

func signed(key *ecdsa.PublicKey, input string, signature []byte) bool {
	if key == nil || key.Curve != elliptic.P256() || len(signature) != 64 {
		return false
	}
	sum := sha256.Sum256([]byte(input))
	r, s := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])
	return ecdsa.Verify(key, sum[:], r, s)
}

// read reads one part of a PASSporT.
func read(part string, into any) error {
	text, err := encoding.DecodeString(part)
	if err != nil {
		return errors.New("not base64url")
	}
	if json.Unmarshal(text, into) != nil {
		return errors.New("not the JSON of a passport")
	}
	return nil
}

// checkParams holds the parameters of the header to what is signed (RFC 8224
// section 4.1).
func checkParams(params, x5u string) error {
	found := false
	for p := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(p, "=")
		value = strings.Trim(strings.TrimSpace(value), `"`)
		want := value
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "info":
			found, want = true, "<"+x5u+">"
		case "alg":
			want = algorithm
		case "ppt":
			want = extension
		}
		if value != want {
			return errors.New("identity: the parameters are not those of the passport")
		}
	}
	if !found {
		return errors.New("identity: no info")
	}
	return nil
}

func checkClaims(c claims) error {
	switch c.Attest {
	case Full, Partial, Gateway:
	default:
		return errors.New("identity: attestation is none of A, B and C")
	}
	if len(c.Dest.TN) == 0 || !isUUID(c.OrigID) || c.IAT <= 0 {
		return errors.New("identity: no dest, iat or origid")
	}
	for _, number := range append([]string{c.Orig.TN}, c.Dest.TN...) {
		if digits, ok := Canonical(number); !ok || digits != number {
			return errors.New("identity: a number is not in its canonical form")
		}
	}
	return nil
}
