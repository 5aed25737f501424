package guard

import (
	"bytes"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/emiago/sipgo/sip"
)

const (
	maxMessage = 16 << 10
	maxHeaders = 64
	maxLine    = 4096
)

// A Filter drops what need not be read, before anything is allocated for it.
// Trusted is its wiring and must not change once it is used.
type Filter struct {
	// Trusted says which addresses may send as much as they like; nil trusts
	// none but those that we write to.
	Trusted func(netip.Addr) bool

	limit            Limit
	dropped, limited atomic.Int64
	unaccepted       atomic.Int64
	refused          tally
}

// Counts are what was not served so far; Unreadable is not the filter's to
// know.
func (f *Filter) Counts() Counts {
	return Counts{
		Dropped: f.dropped.Load(), Limited: f.limited.Load(), Unaccepted: f.unaccepted.Load(), Refused: f.refused.copy(),
	}
}

// Refuse notes that a request was refused.
func (f *Filter) Refuse(status int) { f.refused.add(status) }

// Know has the filter trust where we write to: "192.0.2.1:5060". A name is
// not trusted.
func (f *Filter) Know(addr string) {
	if at, err := netip.ParseAddrPort(addr); err == nil {
		f.limit.Know(at.Addr(), time.Now())
	}
}

// Knows says whether the sender at addr, "192.0.2.1:5060", is trusted.
func (f *Filter) Knows(addr string) bool {
	at, err := netip.ParseAddrPort(addr)
	return err == nil && (f.Trusted != nil && f.Trusted(at.Addr().Unmap()) || f.limit.Knows(at.Addr()))
}

// Read is the library's sip.TransportReadFilter. It never returns an error,
// which would end the listener. Streams pass: they come in pieces, which a
// Listener puts together.
func (f *Filter) Read(in sip.TransportReadProps, data []byte) ([]byte, error) {
	if in.Transport != "UDP" {
		return data, nil
	}
	if !plausible(data) {
		f.dropped.Add(1)
		return nil, nil
	}
	if from, ok := in.RemoteAddr.(*net.UDPAddr); ok && !f.take(from.AddrPort().Addr()) {
		return nil, nil
	}
	return data, nil
}

// take says whether a message of addr is taken now.
func (f *Filter) take(addr netip.Addr) bool {
	if f.Trusted != nil && f.Trusted(addr.Unmap()) || f.limit.Allow(addr, time.Now()) {
		return true
	}
	f.limited.Add(1)
	return false
}

// plausible says whether a datagram looks like SIP of a sane size.
func plausible(data []byte) bool {
	if len(data) > maxMessage {
		return false
	}
	head, _, found := bytes.Cut(data, []byte("\r\n\r\n"))
	if !found {
		return len(data) <= 4 // a keep-alive
	}
	for n := 0; len(head) > 0; n++ {
		var line []byte
		line, head, _ = bytes.Cut(head, []byte("\r\n"))
		// A feed alone would be a part of a value that others read as the end of it.
		if len(line) > maxLine || n > maxHeaders || bytes.IndexByte(line, '\n') >= 0 {
			return false
		}
		if n == 0 && !starts(line) {
			return false
		}
	}
	return true
}

// starts says whether a line may begin a message. A request of another version
// than 2.0 passes too, to be told so.
func starts(line []byte) bool {
	return bytes.HasPrefix(line, []byte("SIP/2.0 ")) || bytes.Contains(line, []byte(" SIP/"))
}
