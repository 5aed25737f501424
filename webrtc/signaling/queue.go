package signaling

import "slices"

// queueLen is the number of messages that may be queued for a browser.
const queueLen = 128

// A priority decides which message a full queue drops, lowest first.
type priority uint8

const (
	ephemeral  priority = iota // a state or interim words, replaced by the next
	finalWords                 // final words of a transcript
	essential                  // turns, the end, readiness: never dropped
)

type message struct {
	priority priority
	body     any
}

// A queue holds messages that a browser has not received. A full queue drops
// the oldest message of the lowest priority.
type queue struct{ messages []message }

// push returns false if the queue is full of essential messages. It still adds
// another essential one: their number per call is bounded.
func (q *queue) push(m message) bool {
	room := len(q.messages) < queueLen || q.drop()
	if room || m.priority == essential {
		q.messages = append(q.messages, m)
	}
	return room
}

func (q *queue) drop() bool {
	for _, w := range []priority{ephemeral, finalWords} {
		if i := slices.IndexFunc(q.messages, func(m message) bool { return m.priority == w }); i >= 0 {
			q.messages = slices.Delete(q.messages, i, i+1)
			return true
		}
	}
	return false
}

// pushFront returns a message that could not be sent.
func (q *queue) pushFront(m message) { q.messages = slices.Insert(q.messages, 0, m) }

func (q *queue) pop() (message, bool) {
	if len(q.messages) == 0 {
		return message{}, false
	}
	m := q.messages[0]
	q.messages = q.messages[1:]
	return m, true
}

func (q *queue) dropReady() { q.messages = slices.DeleteFunc(q.messages, message.isConnectionScoped) }

// isConnectionScoped reports whether a message is only valid for one peer
// connection; a new socket has another.
func (m message) isConnectionScoped() bool {
	_, ok := m.body.(readyMessage)
	return ok
}
