package calls

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/url"
	"time"

	"github.com/parley-voice/parley/control"
)

// A cursor is the time and the id of the call with which a page ended, and a signature
// that binds them to the organization and to the filters they belong to.
const (
	timeLen = 8
	macLen  = 16
)

func (c *Calls) cursor(at time.Time, id string, q url.Values, orgID string) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(at.UnixMicro()))
	b = append(b, id...)
	return base64.RawURLEncoding.EncodeToString(append(b, c.sign(b, q, orgID)...))
}

func (c *Calls) openCursor(text string, q url.Values, orgID string) (time.Time, string, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) <= timeLen+macLen {
		return time.Time{}, "", badCursor()
	}
	b, mac := b[:len(b)-macLen], b[len(b)-macLen:]
	if !hmac.Equal(mac, c.sign(b, q, orgID)) {
		return time.Time{}, "", badCursor()
	}
	return time.UnixMicro(int64(binary.BigEndian.Uint64(b))), string(b[timeLen:]), nil //nolint:gosec // signed by us
}

func badCursor() error {
	return control.Refuse(control.CodeInvalidCursor, "the cursor is not one of this list")
}

func (c *Calls) sign(b []byte, q url.Values, orgID string) []byte {
	filters := url.Values{}
	for name, values := range q {
		if name != "cursor" && name != "limit" { // the next page may be longer
			filters[name] = values
		}
	}
	m := hmac.New(sha256.New, c.CursorKey)
	m.Write(b)
	m.Write([]byte("\x00" + orgID + "\x00" + filters.Encode()))
	return m.Sum(nil)[:macLen]
}
