package sanitize

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

// A Filter drops messages before anything is allocated for them. AlwaysTrusted
// must not change after the first use.
type Filter struct {
	// AlwaysTrusted reports whether an address is exempt from the rate limit; nil
	// exempts only addresses that were sent a message lately.
	AlwaysTrusted func(netip.Addr) bool

	limit            Limit
	dropped, limited atomic.Int64
	unaccepted       atomic.Int64
	foreign          atomic.Int64
	refused          statusCounter
}

// Counts returns the counts; the caller adds Unreadable.
func (f *Filter) Counts() Counts {
	return Counts{
		Dropped: f.dropped.Load(), Limited: f.limited.Load(), Unaccepted: f.unaccepted.Load(),
		Foreign: f.foreign.Load(), Refused: f.refused.copy(),
	}
}

// CountRefused counts a refused request.
func (f *Filter) CountRefused(status int) { f.refused.add(status) }

// CountForeign counts a message of a call from an address outside the trunk.
func (f *Filter) CountForeign() { f.foreign.Add(1) }

// Trust exempts the destination of a message, "192.0.2.1:5060". Host names are
// ignored.
func (f *Filter) Trust(addr string) {
	if at, err := netip.ParseAddrPort(addr); err == nil {
		f.limit.Exempt(at.Addr(), time.Now())
	}
}

// Trusts reports whether the sender at addr, "192.0.2.1:5060", is exempt.
func (f *Filter) Trusts(addr string) bool {
	at, err := netip.ParseAddrPort(addr)
	return err == nil && f.TrustsHost(at.Addr())
}

// TrustsHost reports whether an address is exempt.
func (f *Filter) TrustsHost(addr netip.Addr) bool {
	return f.AlwaysTrusted != nil && f.AlwaysTrusted(addr.Unmap()) || f.limit.IsExempt(addr)
}

// Read implements sip.TransportReadFilter. It returns no errors, since an error
// would end the listener. Streams pass unchanged; a Listener checks them.
func (f *Filter) Read(in sip.TransportReadProps, data []byte) ([]byte, error) {
	if in.Transport != "UDP" {
		return data, nil
	}
	if !looksLikeSIP(data) {
		f.dropped.Add(1)
		return nil, nil
	}
	if from, ok := in.RemoteAddr.(*net.UDPAddr); ok && !f.allow(from.AddrPort().Addr()) {
		return nil, nil
	}
	return data, nil
}

// allow reports whether a message from addr is within the rate limit.
func (f *Filter) allow(addr netip.Addr) bool {
	if f.AlwaysTrusted != nil && f.AlwaysTrusted(addr.Unmap()) || f.limit.Allow(addr, time.Now()) {
		return true
	}
	f.limited.Add(1)
	return false
}

// looksLikeSIP reports whether a datagram may be SIP of an accepted size.
func looksLikeSIP(data []byte) bool {
	if len(data) > maxMessage {
		return false
	}
	head, _, found := bytes.Cut(data, []byte("\r\n\r\n"))
	if !found {
		return len(data) <= 4 // an empty datagram is a keep-alive
	}
	for n := 0; len(head) > 0; n++ {
		var line []byte
		line, head, _ = bytes.Cut(head, []byte("\r\n"))
		// Some parsers end a line at a bare LF, others read it as a part of the value.
		if len(line) > maxLine || n > maxHeaders || bytes.IndexByte(line, '\n') >= 0 {
			return false
		}
		if n == 0 && !isStartLine(line) {
			return false
		}
	}
	return true
}

// isStartLine reports whether a line may start a message. Other versions than 2.0
// pass, to be answered with 505.
func isStartLine(line []byte) bool {
	return bytes.HasPrefix(line, []byte("SIP/2.0 ")) || bytes.Contains(line, []byte(" SIP/"))
}
