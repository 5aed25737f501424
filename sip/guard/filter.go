package guard

import (
	"bytes"
	"sync/atomic"

	"github.com/emiago/sipgo/sip"
)

const (
	maxDatagram = 16 << 10
	maxHeaders  = 64
	maxLine     = 4096
)

// A Filter drops datagrams before anything is allocated for them.
type Filter struct{ dropped atomic.Int64 }

// Dropped is how many datagrams were dropped.
func (f *Filter) Dropped() int64 { return f.dropped.Load() }

// Read is the library's sip.TransportReadFilter. It never returns an error,
// which would end the listener. Streams pass: they come in pieces, and the
// library bounds them.
func (f *Filter) Read(in sip.TransportReadProps, data []byte) ([]byte, error) {
	if in.Transport != "UDP" || plausible(data) {
		return data, nil
	}
	f.dropped.Add(1)
	return nil, nil
}

// plausible says whether a datagram looks like SIP of a sane size.
func plausible(data []byte) bool {
	if len(data) > maxDatagram {
		return false
	}
	head, _, found := bytes.Cut(data, []byte("\r\n\r\n"))
	if !found {
		return len(data) <= 4 // a keep-alive
	}
	for n := 0; len(head) > 0; n++ {
		var line []byte
		line, head, _ = bytes.Cut(head, []byte("\r\n"))
		if len(line) > maxLine || n > maxHeaders {
			return false
		}
		if n == 0 && !bytes.Contains(line, []byte("SIP/2.0")) {
			return false
		}
	}
	return true
}
