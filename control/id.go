package control

import (
	"crypto/rand"
	"encoding/binary"
	"strings"
	"time"
)

const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// NewID returns prefix followed by a ULID with 26 characters. Ids sort by the time now in milliseconds; within a
// millisecond the order is random.
func NewID(prefix string, now time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16)
	_, _ = rand.Read(b[6:]) // never fails since Go 1.24
	// Each character encodes five bits, starting at the highest; the first character has only three.
	hi, lo := binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	var out [26]byte
	for i := 25; i >= 0; i-- {
		out[i] = crockford[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return prefix + string(out[:])
}

// IDTime returns the time at which an id was made. ok is false if id is not from NewID.
func IDTime(id string) (t time.Time, ok bool) {
	const timeLen, idLen = 10, 26
	if len(id) < idLen {
		return t, false
	}
	var ms int64
	for n, c := range []byte(id[len(id)-idLen:]) {
		at := strings.IndexByte(crockford, c)
		if at < 0 {
			return t, false
		}
		if n < timeLen {
			ms = ms<<5 | int64(at)
		}
	}
	return time.UnixMilli(ms), true
}
