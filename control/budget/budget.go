// Package budget limits the memory that request bodies use while they are parsed, for each organization and for the
// whole process.
package budget

import (
	"cmp"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/parley-voice/parley/control"
)

// Defaults of a Budget.
const (
	defaultTotal = 96 << 20 // bytes of all organizations
	defaultEach  = 32 << 20 // bytes of one organization
	free         = 64 << 10 // first bytes of each body that are not counted, so that small requests always succeed
	defaultLists = 2        // contact lists that may be read at the same time; one per organization
	retryAfter   = 2 * time.Second
)

// Budget counts the memory of all requests. The zero value is ready to use. It is safe for concurrent use.
type Budget struct {
	Total int64 // bytes of all bodies together; 0 means 96 MiB
	Each  int64 // bytes of the bodies of one organization; 0 means 32 MiB
	Lists int   // contact lists read at the same time; 0 means 2

	mu    sync.Mutex
	used  int64
	by    map[string]int64
	lists map[string]bool
}

// take reserves n bytes for an organization and reports whether they were available. An organization may use at most
// half of the memory that other organizations leave free. A few organizations with slow requests therefore cannot use
// all memory.
func (b *Budget) take(org string, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	others := b.used - b.by[org]
	if b.by[org]+n > min(cmp.Or(b.Each, defaultEach), (cmp.Or(b.Total, defaultTotal)-others)/2) {
		return false
	}
	if b.by == nil {
		b.by = map[string]int64{}
	}
	b.used += n
	b.by[org] += n
	return true
}

func (b *Budget) release(org string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.by[org] -= n; b.by[org] == 0 {
		delete(b.by, org)
	}
}

// List lets an organization read one contact list until done is called. It returns an error at once if the organization
// already reads a list, or if too many lists are being read.
func (b *Budget) List(org string) (done func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lists[org] || len(b.lists) >= cmp.Or(b.Lists, defaultLists) {
		return nil, exceeded("another list of contacts is being read")
	}
	if b.lists == nil {
		b.lists = map[string]bool{}
	}
	b.lists[org] = true
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.lists, org)
	}), nil
}

func exceeded(why string) error {
	return &control.Error{
		Code: control.CodeRequestBudget, RetryAfter: retryAfter,
		Message: fmt.Sprintf("%s: repeat the request in %.0f seconds", why, retryAfter.Seconds()),
	}
}

// Body is a request body whose bytes count against a budget.
type Body struct {
	io.ReadCloser

	budget   *Budget
	org      string
	declared int64 // Content-Length, or -1 if unknown
	most     int64 // maximum number of counted bytes

	read, held int64
}

// Body wraps a request body so that its bytes count against the budget. declared is the request's Content-Length, or
// -1. most is the maximum number of counted bytes; the caller must not keep more in memory. Call Release after the
// request.
func (b *Budget) Body(body io.ReadCloser, org string, declared, most int64) *Body {
	return &Body{ReadCloser: body, budget: b, org: org, declared: declared, most: most}
}

// Read implements io.Reader. It returns a *control.Error if the budget is used up.
func (b *Body) Read(p []byte) (int, error) {
	if err := b.reserve(max(b.declared, b.read+1)); err != nil {
		return 0, err
	}
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	return n, err
}

// reserve reserves memory for the first n bytes of the body, except the first 64 KiB.
func (b *Body) reserve(n int64) error {
	n = min(n, b.most)
	if n-free <= b.held {
		return nil
	}
	if n > b.declared { // for a body of unknown length, the reservation doubles each time
		n = min(max(n, 2*(b.held+free)), b.most)
	}
	if !b.budget.take(b.org, n-free-b.held) {
		return exceeded("too many large requests at once")
	}
	b.held = n - free
	return nil
}

// Release returns all bytes of the body to the budget.
func (b *Body) Release() {
	if b.held > 0 {
		b.budget.release(b.org, b.held)
		b.held = 0
	}
}
