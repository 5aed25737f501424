// Package budget bounds the memory that requests hold while they are parsed: for
// each organization, and for the process.
package budget

import (
	"cmp"
	"io"
	"sync"
	"time"

	"github.com/parley-voice/parley/control"
)

// The default bounds.
const (
	defaultTotal = 96 << 20 // bytes
	defaultEach  = 32 << 20 // bytes of one organization
	free         = 64 << 10 // bytes of each body that are not counted: small requests always pass
	defaultLists = 2        // lists of contacts that are read at once, one per organization
	retryAfter   = 2 * time.Second
)

// A Budget is the memory of all requests. The zero value is ready. It is safe for concurrent use.
type Budget struct {
	Total int64 // bytes of bodies; 0 means 96 MiB
	Each  int64 // bytes of the bodies of one organization; 0 means 32 MiB
	Lists int   // lists read at once; 0 means 2

	mu    sync.Mutex
	used  int64
	by    map[string]int64
	lists map[string]bool
}

// take reserves n bytes for an organization and reports whether they fit. An organization may hold half of what the
// others leave, so that a few slow ones cannot hold everything.
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

// List reserves the reading of one list of contacts until done is called. It
// fails at once if the organization already reads a list, or too many organizations do.
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
	return &control.Error{Code: control.CodeRequestBudget, Message: why + ": repeat the request after Retry-After", RetryAfter: retryAfter}
}

// A Body counts the bytes of a request body against a budget.
type Body struct {
	io.ReadCloser

	budget   *Budget
	org      string
	declared int64 // Content-Length, or -1
	most     int64 // limit of the counted bytes

	read, held int64
}

// Body returns body and counts it. Declared is the Content-Length of the request, or -1. Most bounds the counted bytes:
// the caller keeps no more of them in memory. Release must be called after the request.
func (b *Budget) Body(body io.ReadCloser, org string, declared, most int64) *Body {
	return &Body{ReadCloser: body, budget: b, org: org, declared: declared, most: most}
}

// Read implements io.Reader. It fails with a *control.Error if the budget is exhausted.
func (b *Body) Read(p []byte) (int, error) {
	if err := b.reserve(max(b.declared, b.read+1)); err != nil {
		return 0, err
	}
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	return n, err
}

// reserve counts n bytes of the body, except the free ones.
func (b *Body) reserve(n int64) error {
	n = min(n, b.most)
	if n-free <= b.held {
		return nil
	}
	if n > b.declared { // a body of unknown size grows by doubling
		n = min(max(n, 2*(b.held+free)), b.most)
	}
	if !b.budget.take(b.org, n-free-b.held) {
		return exceeded("too many large requests at once")
	}
	b.held = n - free
	return nil
}

// Release returns the bytes to the budget.
func (b *Body) Release() {
	if b.held > 0 {
		b.budget.release(b.org, b.held)
		b.held = 0
	}
}
