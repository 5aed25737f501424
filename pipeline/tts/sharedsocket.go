package tts

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// A sharedSocket is a socket that several Cartesia utterances use at once. Its goroutine dispatches
// messages to them and ends with the socket.
type sharedSocket struct {
	*socket
	done chan struct{} // closed when the goroutine has ended

	mu          sync.Mutex
	speaking    map[string]*cartesiaSynthesis // utterances by the name of their context
	lastMessage time.Time                     // when the last message arrived
	closing     bool                          // no new utterance may start; the socket closes after the last one
	dead        bool
}

func newSharedSocket(s *socket) *sharedSocket {
	l := &sharedSocket{socket: s, done: make(chan struct{}), speaking: map[string]*cartesiaSynthesis{}}
	go l.run()
	return l
}

func (l *sharedSocket) add(id string, s pipeline.Style) *cartesiaSynthesis {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead || l.closing || len(l.speaking) >= maxContexts {
		return nil
	}
	u := &cartesiaSynthesis{socket: l, peer: l.peer, name: id, id: id, style: s, wake: make(chan struct{}, 1)}
	l.speaking[id] = u
	return u
}

// move changes the context of an utterance. Later messages of the old context are dropped.
func (l *sharedSocket) move(u *cartesiaSynthesis, from, to string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return errors.New("cartesia: the connection ended")
	}
	delete(l.speaking, from)
	l.speaking[to] = u
	return nil
}

// remove removes an utterance. since is when its speech became due; zero means that none is due.
// If speech is due but no message came for maxSilence, the socket closes after its last
// utterance. Pings do not detect this: a proxy may answer them while the provider hangs.
func (l *sharedSocket) remove(id string, since time.Time) {
	l.mu.Lock()
	delete(l.speaking, id)
	if !since.IsZero() && time.Since(later(since, l.lastMessage)) >= maxSilence {
		l.closing = true
	}
	end := l.closing && len(l.speaking) == 0
	l.mu.Unlock()
	if end {
		l.close()
	}
}

// retire closes the socket after its last utterance. It reports whether the socket was idle and
// therefore closed at once.
func (l *sharedSocket) retire() bool {
	l.mu.Lock()
	l.closing = true
	idle := len(l.speaking) == 0
	l.mu.Unlock()
	if idle {
		l.close()
	}
	return idle
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// run dispatches messages. It never blocks on an utterance: each utterance keeps up to maxUnread
// bytes until Audio reads them.
func (l *sharedSocket) run() {
	defer close(l.done)
	tick := time.NewTicker(cartesiaCheck)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if !l.ping() {
				_ = l.conn.Close() // the reader ends, too, and closes l.in
			}
		case r, ok := <-l.in:
			if !ok {
				l.fail(l.err)
				return
			}
			m, err := parseCartesia(r.body)
			if err != nil {
				l.fail(fmt.Errorf("cartesia: %w", err))
				l.close()
				return
			}
			l.mu.Lock()
			l.lastMessage = time.Now()
			u := l.speaking[m.Context]
			l.mu.Unlock()
			switch {
			case u != nil:
				u.onMessage(m) // u is nil if the utterance was canceled
			case m.Type == "error" && m.Context == "":
				l.onConnectionError(m)
			}
		}
	}
}

// onConnectionError handles an error that names no context. It ends all utterances. Exception: if the error reports
// an invalid request and the socket has several utterances, none ends, because the invalid one is unknown.
func (l *sharedSocket) onConnectionError(m cartesiaMessage) {
	err := m.refusal(l.peer)
	var refused *pipeline.RefusedError
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.speaking) > 1 && errors.As(err, &refused) && refused.IsRequestFault() {
		return
	}
	for _, u := range l.speaking {
		u.fail(err)
	}
}

// fail ends the socket and all its utterances.
func (l *sharedSocket) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	for _, u := range l.speaking {
		u.fail(err)
	}
}
