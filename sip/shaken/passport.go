package shaken

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// What stands in every PASSporT here.
const (
	algorithm = "ES256"
	extension = "shaken"
	passport  = "passport"
)

const (
	maxDigits   = 32
	maxURL      = 1024
	maxIdentity = 8192 // bytes of a header value
)

//nolint:gochecknoglobals // read-only
var encoding = base64.RawURLEncoding.Strict()

// A header is that of a PASSporT. The fields of these types stand in the order
// of their names, in which they are signed (RFC 8225 section 9).
type header struct {
	Alg string `json:"alg"`
	PPT string `json:"ppt,omitempty"`
	Typ string `json:"typ"`
	X5U string `json:"x5u"`
}

type claims struct {
	Attest Level  `json:"attest,omitempty"`
	Dest   called `json:"dest"`
	IAT    int64  `json:"iat"`
	Orig   caller `json:"orig"`
	OrigID string `json:"origid,omitempty"`
}

type called struct {
	TN  []string `json:"tn,omitempty"`
	URI []string `json:"uri,omitempty"`
}

type caller struct {
	TN string `json:"tn"`
}

// serialize writes what is signed.
func serialize(h header, c claims) (string, error) {
	first, err := compact(h)
	if err != nil {
		return "", err
	}
	second, err := compact(c)
	return first + "." + second, err
}

// compact writes a part of a PASSporT: JSON without white space, and with the
// characters of URLs as they are.
func compact(part any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(part); err != nil {
		return "", fmt.Errorf("write a passport: %w", err)
	}
	return encoding.EncodeToString(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}
