package stirshaken

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// Values of every PASSporT.
const (
	algorithm = "ES256"
	extension = "shaken"
	passport  = "passport"
)

const (
	maxDigits   = 32
	maxURL      = 1024
	maxIdentity = 8192 // bytes of a header's value
)

//nolint:gochecknoglobals // read-only
var encoding = base64.RawURLEncoding.Strict()

// A header is the header of a PASSporT. The fields of these types are in the
// order of their JSON names, as RFC 8225 section 9 requires for signing.
type header struct {
	Alg string `json:"alg"`
	PPT string `json:"ppt,omitempty"`
	Typ string `json:"typ"`
	X5U string `json:"x5u"`
}

type claims struct {
	Attest Level       `json:"attest,omitempty"`
	Dest   destination `json:"dest"`
	IAT    int64       `json:"iat"`
	Orig   origin      `json:"orig"`
	OrigID string      `json:"origid,omitempty"`
}

type destination struct {
	TN  []string `json:"tn,omitempty"`
	URI []string `json:"uri,omitempty"`
}

type origin struct {
	TN string `json:"tn"`
}

func serialize(h header, c claims) (string, error) {
	first, err := compact(h)
	if err != nil {
		return "", err
	}
	second, err := compact(c)
	return first + "." + second, err
}

// compact encodes a part of a PASSporT as JSON without white space and without
// HTML escapes.
func compact(part any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(part); err != nil {
		return "", fmt.Errorf("write a passport: %w", err)
	}
	return encoding.EncodeToString(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}
