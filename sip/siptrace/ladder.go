// Package siptrace records the SIP messages of a call, without secrets.
package siptrace

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/sanitize"
)

// maxMessages bounds the messages kept of a call. The first ones matter most; the
// last slot holds the newest.
const maxMessages = 200

const maxNote = 400

// recentCount is the number of received messages that are recognized when they are added a
// second time. Two goroutines add each message, one shortly after the other.
const recentCount = 16

// A Ladder holds the messages of one call. Its methods are safe for concurrent
// use.
type Ladder struct {
	mu            sync.Mutex
	messages      []media.Message
	hasRung       bool
	hasProgressed bool
	recent        [recentCount]sip.Message // newest received messages
	count         int                      // number of all received messages
	done          chan struct{}            // closed by End
	isEnded       bool
}

// New returns an empty ladder.
func New() *Ladder { return &Ladder{done: make(chan struct{})} }

// Add appends a message.
func (l *Ladder) Add(m media.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(m)
}

// add must be called with l.mu held.
func (l *Ladder) add(m media.Message) {
	if len(l.messages) == maxMessages {
		l.messages[maxMessages-1] = m
		return
	}
	l.messages = append(l.messages, m)
}

// AddReceived appends a received message once, even if called again with it.
func (l *Ladder) AddReceived(msg sip.Message, peer string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.recent[:], msg) {
		return
	}
	l.recent[l.count%recentCount] = msg
	l.count++
	l.add(Describe(msg, false, peer, at))
}

// Explain appends a note to the newest message. Without a message it adds one
// that says that no INVITE was sent.
func (l *Ladder) Explain(why string, at time.Time) {
	why = sanitize.Truncate(strings.ReplaceAll(why, "\n", "; "), maxNote)
	if why == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.messages) == 0 {
		l.add(media.Message{At: at, Out: true, Peer: "-", Line: "no INVITE was sent", Note: why})
		return
	}
	last := &l.messages[len(l.messages)-1]
	if last.Note != "" {
		last.Note += ", "
	}
	last.Note += why
}

// End marks the trace as complete.
func (l *Ladder) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isEnded {
		l.isEnded = true
		close(l.done)
	}
}

// Wait returns the messages after End, or when ctx ends.
func (l *Ladder) Wait(ctx context.Context) []media.Message {
	select {
	case <-l.done:
	case <-ctx.Done():
	}
	return l.Messages()
}

// Messages returns the messages so far, oldest first.
func (l *Ladder) Messages() []media.Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.messages)
}

// SetProgress records a provisional response.
func (l *Ladder) SetProgress(status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hasProgressed = l.hasProgressed || status > 100
	l.hasRung = l.hasRung || status == 180 || status == 183
}

// HasProgressed reports a provisional response above 100: a phone may have rung.
func (l *Ladder) HasProgressed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hasProgressed
}

// HasRung reports whether a 180 or 183 arrived.
func (l *Ladder) HasRung() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hasRung
}

// Describe summarizes a message sent to or received from peer.
func Describe(msg sip.Message, out bool, peer string, at time.Time) media.Message {
	m := media.Message{At: at, Out: out, Peer: peer + "/" + strings.ToUpper(msg.Transport())}
	switch msg := msg.(type) {
	case *sip.Request:
		m.Line = sanitize.Clean(string(msg.Method) + " " + msg.Recipient.String())
	case *sip.Response:
		m.Line = sanitize.Clean(fmt.Sprintf("%d %s", msg.StatusCode, msg.Reason))
	}
	m.Note = note(msg)
	return m
}

// shownHeaders are the headers with shown values. None holds a secret.
//
//nolint:gochecknoglobals // read-only table
var shownHeaders = []string{
	"Session-Expires", "Min-SE", "RSeq", "RAck", "Retry-After", "Reason", "Warning", "Require", "Unsupported",
	"Refer-To", "Event", "Subscription-State", "Expires", "Min-Expires", "Privacy",
}

// secretHeaders are shown by name only: they hold credentials or signatures.
//
//nolint:gochecknoglobals // read-only table
var secretHeaders = []string{"Authorization", "Proxy-Authorization", "WWW-Authenticate", "Proxy-Authenticate", "Identity"}

func note(msg sip.Message) string {
	var notes []string
	if c := msg.CSeq(); c != nil {
		notes = append(notes, fmt.Sprintf("%d %s", c.SeqNo, c.MethodName))
	}
	for _, name := range shownHeaders {
		for _, h := range msg.GetHeaders(name) {
			notes = append(notes, name+": "+sanitize.Clean(h.Value()))
		}
	}
	for _, name := range secretHeaders {
		if len(msg.GetHeaders(name)) > 0 {
			notes = append(notes, name)
		}
	}
	if d := summarizeSDP(string(msg.Body())); d != "" {
		notes = append(notes, d)
	}
	return strings.Join(notes, ", ")
}

// summarizeSDP returns the media lines, addresses and direction, without keys
// (a=crypto).
func summarizeSDP(body string) string {
	var parts []string
	for line := range strings.Lines(body) {
		line = strings.TrimRight(line, "\r\n ")
		switch {
		case strings.HasPrefix(line, "m="), strings.HasPrefix(line, "c="):
			parts = append(parts, sanitize.Clean(line))
		case strings.HasPrefix(line, "a=sendonly"), strings.HasPrefix(line, "a=recvonly"), strings.HasPrefix(line, "a=inactive"):
			parts = append(parts, sanitize.Clean(line[2:]))
		}
		if len(parts) == 6 {
			break
		}
	}
	return strings.Join(parts, " ")
}
