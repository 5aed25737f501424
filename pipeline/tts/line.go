package tts

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// A line is a socket that utterances share. Its goroutine hands out what comes;
// it ends with the socket.
type line struct {
	*socket
	over chan struct{} // the goroutine ended

	mu       sync.Mutex
	speaking map[string]*cartesiaSpeaking // by the name of the context that each is in
	heard    time.Time                    // when something came last
	suspect  bool                         // nothing came that was due: nobody else is to begin here
	dead     bool
}

func newLine(s *socket) *line {
	l := &line{socket: s, over: make(chan struct{}), speaking: map[string]*cartesiaSpeaking{}}
	go l.run()
	return l
}

func (l *line) begin(id string, s pipeline.Style) *cartesiaSpeaking {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead || l.suspect || len(l.speaking) >= mostContexts {
		return nil
	}
	u := &cartesiaSpeaking{line: l, name: id, id: id, style: s, wake: make(chan struct{}, 1)}
	l.speaking[id] = u
	return u
}

// move gives an utterance another context: what still comes of the old one is
// nobody's.
func (l *line) move(u *cartesiaSpeaking, from, to string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return errors.New("cartesia: the connection ended")
	}
	delete(l.speaking, from)
	l.speaking[to] = u
	return nil
}

// leave takes an utterance off, which something is due to since; zero for
// nothing. A socket whose other end hangs answers pings still, if they are
// answered on the way: it is closed with its last utterance.
func (l *line) leave(id string, since time.Time) {
	l.mu.Lock()
	delete(l.speaking, id)
	if !since.IsZero() && time.Since(later(since, l.heard)) >= suspicious {
		l.suspect = true
	}
	end := l.suspect && len(l.speaking) == 0
	l.mu.Unlock()
	if end {
		l.close()
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// run hands what comes to whom it is for. It waits for nobody: what is not yet
// heard of an utterance is kept, up to mostUnheard.
func (l *line) run() {
	defer close(l.over)
	tick := time.NewTicker(cartesiaCheck)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if !l.ping() {
				_ = l.conn.Close() // ends what comes in, too
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
			l.heard = time.Now()
			u := l.speaking[m.Context]
			l.mu.Unlock()
			if u != nil {
				u.take(m) // nobody else's: it was cancelled
			}
		}
	}
}

// fail ends the line and all that is spoken on it.
func (l *line) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	for _, u := range l.speaking {
		u.fail(err)
	}
}
