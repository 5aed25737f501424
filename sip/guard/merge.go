package guard

import (
	"strings"
	"sync"
	"time"

	"github.com/emiago/sipgo/sip"
)

// Merges finds requests that came twice, over different ways (RFC 3261 section
// 8.2.2.2). It remembers a request for 16 to 32 s, which is as long as its
// transaction lives, and 8,192 of them at most. The zero value is ready; it may
// be used by any goroutine.
type Merges struct {
	mu         sync.Mutex
	young, old map[string]string // branches, by request
	turned     time.Time
}

// Again says whether a whole request outside a dialog is one that has come by
// another way. One that comes again by the same way is not.
func (m *Merges) Again(req *sip.Request, now time.Time) bool {
	cseq := req.CSeq()
	key := strings.Join([]string{string(*req.CallID()), tag(req.From().Params), cseq.Value()}, "\n")
	branch, _ := req.Via().Params.Get("branch")
	branch += "\n" + req.Via().SentBy()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.young == nil || now.Sub(m.turned) > 16*time.Second || len(m.young) >= addresses {
		m.young, m.old, m.turned = map[string]string{}, m.young, now
	}
	for _, seen := range []map[string]string{m.young, m.old} {
		if first, ok := seen[key]; ok {
			return first != branch
		}
	}
	m.young[key] = branch
	return false
}
