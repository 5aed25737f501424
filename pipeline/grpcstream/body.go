package grpcstream

import (
	"io"
	"sync"
	"time"
)

// A body is a request body that consists of queued messages.
type body struct {
	queue   chan []byte
	rest    []byte        // unread rest of the current message; only Read uses it
	ended   chan struct{} // closed by end: no message follows
	stopped chan struct{} // closed by stop: the call is over
	endOnce sync.Once
	once    sync.Once
}

func newBody() *body {
	return &body{queue: make(chan []byte, queued), ended: make(chan struct{}), stopped: make(chan struct{})}
}

func (b *body) put(message []byte, limit time.Duration) error {
	select {
	case <-b.stopped:
		return ErrClosed
	case <-b.ended:
		return ErrClosed
	default:
	}
	select {
	case b.queue <- message:
		return nil
	default:
	}
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case b.queue <- message:
		return nil
	case <-b.stopped:
		return ErrClosed
	case <-t.C:
		return errFull
	}
}

func (b *body) end()  { b.endOnce.Do(func() { close(b.ended) }) }
func (b *body) stop() { b.once.Do(func() { close(b.stopped) }) }

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		select {
		case b.rest = <-b.queue:
			continue
		default:
		}
		select {
		case b.rest = <-b.queue:
		case <-b.stopped:
			return 0, ErrClosed
		case <-b.ended:
			if len(b.queue) == 0 {
				return 0, io.EOF
			}
		}
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// Close implements io.Closer. The HTTP transport calls it when the call ends.
func (b *body) Close() error {
	b.stop()
	return nil
}
