package simulate

import (
	"cmp"
	"container/heap"
)

// A queue has the pending contacts of one group. Due contacts are sorted by priority, the others by due time.
type queue struct {
	ready   byPriority
	waiting byDue
}

// An entry is a contact in a queue.
type entry struct {
	contact  int
	priority int
	due      int64 // nanoseconds
}

type byPriority []entry

func (q byPriority) Len() int           { return len(q) }
func (q byPriority) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q byPriority) Less(i, j int) bool { return compareEntries(q[i], q[j]) < 0 }
func (q *byPriority) Push(x any)        { *q = append(*q, x.(entry)) } //nolint:forcetypeassert // only entries are pushed
func (q *byPriority) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	*q = (*q)[:last]
	return e
}

// compareEntries is negative if a is called before b.
func compareEntries(a, b entry) int {
	return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.due, b.due), cmp.Compare(a.contact, b.contact))
}

type byDue []entry

func (q byDue) Len() int           { return len(q) }
func (q byDue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q byDue) Less(i, j int) bool { return q[i].due < q[j].due }
func (q *byDue) Push(x any)        { *q = append(*q, x.(entry)) } //nolint:forcetypeassert // only entries are pushed
func (q *byDue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	*q = (*q)[:last]
	return e
}

func (q *queue) add(e entry) { heap.Push(&q.waiting, e) }

// moveDue moves the due contacts.
func (q *queue) moveDue(now int64) {
	for len(q.waiting) > 0 && q.waiting[0].due <= now {
		heap.Push(&q.ready, heap.Pop(&q.waiting))
	}
}

func (q *queue) len() int { return len(q.ready) + len(q.waiting) }

// An event is an action at an instant.
type event struct {
	at int64 // nanoseconds
	n  int   // order within one instant
	do func()
}

type events []event

func (q events) Len() int      { return len(q) }
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].n < q[j].n
}
func (q *events) Push(x any) { *q = append(*q, x.(event)) } //nolint:forcetypeassert // only events are pushed
func (q *events) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = event{}
	*q = (*q)[:last]
	return e
}
