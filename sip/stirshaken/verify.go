package stirshaken

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

// ErrSignature is returned if a signature does not match the key.
var ErrSignature = errors.New("the signature does not match the key")

// A Passport is the content of an Identity header. Do not trust it before Verify
// has returned nil.
type Passport struct {
	Attest Level
	From   string   // digits of the caller number
	To     []string // digits of the called number
	At     time.Time
	OrigID string
	X5U    string // URL of the certificate that the passport names

	input     string
	signature []byte
}

// Parse reads an Identity header in its full form (RFC 8224 section 4.1). Errors
// contain nothing of the value.
func Parse(identity string) (Passport, error) {
	if len(identity) > maxIdentity {
		return Passport{}, errors.New("identity: too long")
	}
	token, params, _ := strings.Cut(strings.TrimSpace(identity), ";")
	parts := strings.Split(strings.TrimSpace(token), ".")
	if len(parts) != 3 {
		return Passport{}, errors.New("identity: want three parts separated by dots")
	}
	var h header
	var c claims
	if err := decodePart(parts[0], &h); err != nil {
		return Passport{}, fmt.Errorf("identity: header: %w", err)
	}
	if err := decodePart(parts[1], &c); err != nil {
		return Passport{}, fmt.Errorf("identity: claims: %w", err)
	}
	signature, err := encoding.DecodeString(parts[2])
	if err != nil || len(signature) != 64 {
		return Passport{}, errors.New("identity: want a signature of 64 bytes")
	}
	if h.Alg != algorithm || h.PPT != extension || h.Typ != passport {
		return Passport{}, errors.New("identity: want a shaken passport signed with ES256")
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

// Verify returns an error if the key did not sign the passport, or its time
// differs from now by more than fresh.
func (p Passport) Verify(key *ecdsa.PublicKey, now time.Time, fresh time.Duration) error {
	if !isSigned(key, p.input, p.signature) {
		return ErrSignature
	}
	if d := now.Sub(p.At); d > fresh || d < -fresh {
		return errors.New("the passport is stale")
	}
	return nil
}

func isSigned(key *ecdsa.PublicKey, input string, signature []byte) bool {
	if key == nil || key.Curve != elliptic.P256() || len(signature) != 64 {
		return false
	}
	sum := sha256.Sum256([]byte(input))
	r, s := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])
	return ecdsa.Verify(key, sum[:], r, s)
}

func decodePart(part string, into any) error {
	text, err := encoding.DecodeString(part)
	if err != nil {
		return errors.New("not base64url")
	}
	if json.Unmarshal(text, into) != nil {
		return errors.New("not the JSON of a passport")
	}
	return nil
}

// checkParams compares the header's parameters with the signed values (RFC 8224
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
			return errors.New("identity: the parameters differ from the passport")
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
		return errors.New("identity: want the attestation A, B or C")
	}
	if len(c.Dest.TN) == 0 || !isUUID(c.OrigID) || c.IAT <= 0 {
		return errors.New("identity: dest, iat or origid is missing or invalid")
	}
	for _, number := range append([]string{c.Orig.TN}, c.Dest.TN...) {
		if digits, ok := Canonical(number); !ok || digits != number {
			return errors.New("identity: a number is not in its canonical form")
		}
	}
	return nil
}
