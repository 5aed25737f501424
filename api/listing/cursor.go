// Package listing reads the filters of list requests and signs the cursors of their pages.
package listing

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/url"
	"strings"
	"time"

	"github.com/parley-voice/parley/control"
)

// Sizes of a cursor's parts, in bytes: a time, then the id, then the signature.
const (
	timeLen = 8
	macLen  = 16
)

// A Key signs cursors.
type Key []byte

// Text returns the cursor of a page whose last object has this time and id. It is
// valid for this organization and these filters only.
func (k Key) Text(at time.Time, id string, q url.Values, orgID string) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(at.UnixMicro()))
	b = append(b, id...)
	return base64.RawURLEncoding.EncodeToString(append(b, k.sign(b, q, orgID)...))
}

// Open returns the time and id of a cursor. prefix is that of the list's ids: it refuses cursors of other lists, which
// the same key signs. An invalid cursor is a control.Error with code invalid_cursor.
func (k Key) Open(text, prefix string, q url.Values, orgID string) (time.Time, string, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) <= timeLen+macLen {
		return time.Time{}, "", badCursor()
	}
	b, mac := b[:len(b)-macLen], b[len(b)-macLen:]
	if !hmac.Equal(mac, k.sign(b, q, orgID)) {
		return time.Time{}, "", badCursor()
	}
	id := string(b[timeLen:])
	if !strings.HasPrefix(id, prefix) {
		return time.Time{}, "", badCursor()
	}
	return time.UnixMicro(int64(binary.BigEndian.Uint64(b))), id, nil //nolint:gosec // signed with our key
}

func badCursor() error {
	return control.Refuse(control.CodeInvalidCursor, "the cursor does not belong to this list; start without a cursor")
}

func (k Key) sign(b []byte, q url.Values, orgID string) []byte {
	filters := url.Values{}
	for name, values := range q {
		if name != "cursor" && name != "limit" { // the next page may be longer
			filters[name] = values
		}
	}
	m := hmac.New(sha256.New, k)
	m.Write(b)
	m.Write([]byte("\x00" + orgID + "\x00" + filters.Encode()))
	return m.Sum(nil)[:macLen]
}
