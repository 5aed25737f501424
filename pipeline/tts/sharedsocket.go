package tts

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// A sharedSocket is a socket shared by utterances. Its goroutine dispatches messages and
// ends with the socket.
type sharedSocket struct {
	*socket
	done chan struct{} // closed when the goroutine has ended

	mu          sync.Mutex
	speaking    map[string]*cartesiaSynthesis // utterances by the name of their context
	lastMessage time.Time                     // when the last message arrived
	closing     bool                          // no new utterance may start, and the last one closes the socket
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

// move gives an utterance another context. Later messages of the old context are dropped.
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

// remove removes an utterance whose speech is due since the given time; zero if none is due. A
// socket with missing speech is closed with its last utterance: a proxy may answer its pings
// although the provider hangs.
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

// retire closes the socket after its last utterance. It returns whether it did so at once.
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

// run dispatches messages without blocking. Unread speech is kept, at most maxUnread bytes per
// utterance.
func (l *sharedSocket) run() {
	defer close(l.done)
	tick := time.NewTicker(cartesiaCheck)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if !l.ping() {
				_ = l.conn.Close() // also ends the reading of the connection
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
				u.onMessage(m) // otherwise the utterance was canceled
			case m.Type == "error" && m.Context == "":
				l.onConnectionError(m)
			}
		}
	}
}

// onConnectionError handles an error that names no utterance. It ends all utterances, except
// that a refused request ends only an utterance that is alone.
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
