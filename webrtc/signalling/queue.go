package signalling

import "slices"

// queueLen is how many messages may wait for a browser.
const queueLen = 128

// A worth is how soon a message is given up for others, the least first.
type worth uint8

const (
	passing worth = iota // a state, or words that may still change: the next says more
	worded               // words that were said
	lasting              // turns, the end, that media flows: never given up for others
)

type message struct {
	worth worth
	body  any
}

// A queue holds what a browser has not taken yet. Where it is full the oldest of
// the least worth goes.
type queue struct{ all []message }

// push is false where the queue is full of what must not be lost. That is kept
// all the same: a call has so many turns and no more.
func (q *queue) push(m message) bool {
	room := len(q.all) < queueLen || q.drop()
	if room || m.worth == lasting {
		q.all = append(q.all, m)
	}
	return room
}

func (q *queue) drop() bool {
	for _, w := range []worth{passing, worded} {
		if i := slices.IndexFunc(q.all, func(m message) bool { return m.worth == w }); i >= 0 {
			q.all = slices.Delete(q.all, i, i+1)
			return true
		}
	}
	return false
}

// back puts a message that could not be sent before the others.
func (q *queue) back(m message) { q.all = slices.Insert(q.all, 0, m) }

func (q *queue) pop() (message, bool) {
	if len(q.all) == 0 {
		return message{}, false
	}
	m := q.all[0]
	q.all = q.all[1:]
	return m, true
}

// unready drops what is of a connection of the media alone.
func (q *queue) unready() { q.all = slices.DeleteFunc(q.all, message.ofConnection) }

// ofConnection is whether a message is of a connection of the media: whoever comes
// with another socket comes with another one of those too.
func (m message) ofConnection() bool {
	_, ok := m.body.(readyMessage)
	return ok
}
