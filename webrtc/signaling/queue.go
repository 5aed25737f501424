package signaling

import "slices"

// queueLen is the capacity of a queue in messages.
const queueLen = 128

// A priority decides which message a full queue drops, lowest first.
type priority uint8

const (
	ephemeral  priority = iota // a state or interim words; the next message replaces them
	finalWords                 // final words of a transcript
	essential                  // turns, ready and bye; never dropped
)

type message struct {
	priority priority
	body     any
}

// A queue holds messages for a browser. A full queue drops the oldest message of the lowest priority.
type queue struct{ messages []message }

// push adds a message. It returns false if the queue is full of essential messages. It adds an essential message even
// then, because the number of essential messages per call is bounded.
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

// pushFront puts back a message that could not be sent.
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

// isConnectionScoped reports whether a message is valid for one peer connection only. Each socket has its own peer
// connection.
func (m message) isConnectionScoped() bool {
	_, ok := m.body.(readyMessage)
	return ok
}
