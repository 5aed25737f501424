// Package ladder keeps the messages of one call as an engineer reads them:
// start line, direction and what else tells, without secrets.
package ladder

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/guard"
)

// most is how many messages of a call are kept. Those of its beginning tell
// most; the last place is kept for the newest.
const most = 200

// remembered is how many messages that came in are known again. Two goroutines
// hand in each, one right after the other.
const remembered = 16

// A Ladder is the messages of one call. It may be used by any goroutine.
type Ladder struct {
	mu    sync.Mutex
	rungs []media.Message
	rang  bool
	moved bool
	heard [remembered]sip.Message // that came in lately
	count int                     // of all that came in
	over  chan struct{}           // closed by End
	ended bool
}

// New returns an empty ladder.
func New() *Ladder { return &Ladder{over: make(chan struct{})} }

// Add puts a message on the ladder.
func (l *Ladder) Add(m media.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(m)
}

// add needs l.mu.
func (l *Ladder) add(m media.Message) {
	if len(l.rungs) == most {
		l.rungs[most-1] = m
		return
	}
	l.rungs = append(l.rungs, m)
}

// Hear puts a message that came in on the ladder, once, however often it is
// handed in. It is there when Hear returns.
func (l *Ladder) Hear(msg sip.Message, peer string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.heard[:], msg) {
		return
	}
	l.heard[l.count%remembered] = msg
	l.count++
	l.add(Rung(msg, false, peer, at))
}

// End tells that no more messages are waited for.
func (l *Ladder) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.ended = true
		close(l.over)
	}
}

// Wait returns the messages once End was called, or ctx ends.
func (l *Ladder) Wait(ctx context.Context) []media.Message {
	select {
	case <-l.over:
	case <-ctx.Done():
	}
	return l.Rungs()
}

// Rungs returns the messages so far, oldest first.
func (l *Ladder) Rungs() []media.Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.rungs)
}

// Progress notes a provisional response.
func (l *Ladder) Progress(status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moved = l.moved || status > 100
	l.rang = l.rang || status == 180 || status == 183
}

// Moved says that the call got further than 100: a phone may ring, or have
// rung, whatever its side said of it.
func (l *Ladder) Moved() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.moved
}

// Rang says that a phone was heard to ring.
func (l *Ladder) Rang() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rang
}

// Rung describes a message that was sent to, or came from, peer.
func Rung(msg sip.Message, out bool, peer string, at time.Time) media.Message {
	m := media.Message{At: at, Out: out, Peer: peer + "/" + strings.ToUpper(msg.Transport())}
	switch msg := msg.(type) {
	case *sip.Request:
		m.Line = guard.Clean(string(msg.Method) + " " + msg.Recipient.String())
	case *sip.Response:
		m.Line = guard.Clean(fmt.Sprintf("%d %s", msg.StatusCode, msg.Reason))
	}
	m.Note = note(msg)
	return m
}

// telling are the headers whose values are shown. None holds a secret.
//
//nolint:gochecknoglobals // read-only table
var telling = []string{
	"Session-Expires", "Min-SE", "RSeq", "RAck", "Retry-After", "Reason", "Warning", "Require", "Unsupported",
	"Refer-To", "Event", "Subscription-State", "Expires", "Min-Expires", "Privacy",
}

// marked are the headers that are only said to be there: they hold credentials
// or signatures.
//
//nolint:gochecknoglobals // read-only table
var marked = []string{"Authorization", "Proxy-Authorization", "WWW-Authenticate", "Proxy-Authenticate", "Identity"}

func note(msg sip.Message) string {
	var notes []string
	if c := msg.CSeq(); c != nil {
		notes = append(notes, fmt.Sprintf("%d %s", c.SeqNo, c.MethodName))
	}
	for _, name := range telling {
		for _, h := range msg.GetHeaders(name) {
			notes = append(notes, name+": "+guard.Clean(h.Value()))
		}
	}
	for _, name := range marked {
		if len(msg.GetHeaders(name)) > 0 {
			notes = append(notes, name)
		}
	}
	if d := description(string(msg.Body())); d != "" {
		notes = append(notes, d)
	}
	return strings.Join(notes, ", ")
}

// description is the essence of a session description: its media, where they
// go and which way. Keys (a=crypto) are no part of it.
func description(body string) string {
	var parts []string
	for line := range strings.Lines(body) {
		line = strings.TrimRight(line, "\r\n ")
		switch {
		case strings.HasPrefix(line, "m="), strings.HasPrefix(line, "c="):
			parts = append(parts, guard.Clean(line))
		case strings.HasPrefix(line, "a=sendonly"), strings.HasPrefix(line, "a=recvonly"), strings.HasPrefix(line, "a=inactive"):
			parts = append(parts, guard.Clean(line[2:]))
		}
		if len(parts) == 6 {
			break
		}
	}
	return strings.Join(parts, " ")
}
