package endpoint

import (
	"bytes"
	"net"
	"sync"
	"time"

	"github.com/emiago/sipgo/sip"
)

// An inviteGuard stops copies of an INVITE once timer B has passed since the first one (32 s, RFC 3261 section 17.1.1.2).
// A carrier remembers the transaction for at least as long. After a suspension of the process or the machine, the
// library may repeat an INVITE much later: its timers do not count the suspension, or fire out of order. The carrier
// would take the copy for another call, and the phone would ring again. The zero value is ready to use.
type inviteGuard struct {
	now func() time.Time // nil means time.Now

	mu    sync.Mutex
	first map[string]time.Time // when the first copy left, by the branch of the open transaction; zero before it
}

// add registers a finalized INVITE before it is sent. The caller must call remove after the end of its transaction.
func (g *inviteGuard) add(req *sip.Request) (remove func()) {
	branch, _ := req.Via().Params.Get("branch")
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.first == nil {
		g.first = map[string]time.Time{}
	}
	g.first[branch] = time.Time{}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.first, branch)
	}
}

// mayLeave reports whether a copy of an INVITE may leave. It returns true for INVITEs that were not added.
func (g *inviteGuard) mayLeave(invite []byte) bool {
	_, branch, _ := bytes.Cut(invite, []byte(";branch="))
	if end := bytes.IndexAny(branch, ";\r\n"); end >= 0 {
		branch = branch[:end]
	}
	now := time.Now()
	if g.now != nil {
		now = g.now()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	first, known := g.first[string(branch)]
	if known && first.IsZero() {
		g.first[string(branch)] = now
		return true
	}
	// On some machines only the wall clock counts a suspension, so compare both clocks.
	return !known || max(now.Sub(first), now.Round(0).Sub(first.Round(0))) < sip.Timer_B
}

// A guardedConn is a socket through which late copies of INVITEs do not leave.
type guardedConn struct {
	net.PacketConn

	invites *inviteGuard
}

// WriteTo implements net.PacketConn. It reports success for a copy that must not leave, because the transaction must
// go on: a phone may ring, and its responses lead to a CANCEL.
func (c guardedConn) WriteTo(b []byte, to net.Addr) (int, error) {
	if bytes.HasPrefix(b, []byte("INVITE ")) && !c.invites.mayLeave(b) {
		return len(b), nil
	}
	return c.PacketConn.WriteTo(b, to)
}
