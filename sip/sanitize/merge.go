package sanitize

import (
	"strings"
	"sync"
	"time"

	"github.com/emiago/sipgo/sip"
)

// A MergeDetector finds requests that arrived over two paths (RFC 3261 section
// 8.2.2.2). It remembers a request for 16 to 32 s, the life of its transaction,
// and at most 8,192 requests. The zero value is ready; its methods are safe for
// concurrent use.
type MergeDetector struct {
	mu                sync.Mutex
	current, previous map[string]string // branches of the remembered requests
	rotatedAt         time.Time
}

// IsMerged reports whether a request outside a dialog arrived before over another
// path. A retransmission is not merged.
func (m *MergeDetector) IsMerged(req *sip.Request, now time.Time) bool {
	cseq := req.CSeq()
	key := strings.Join([]string{string(*req.CallID()), tag(req.From().Params), cseq.Value()}, "\n")
	branch, _ := req.Via().Params.Get("branch")
	branch += "\n" + req.Via().SentBy()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current == nil || now.Sub(m.rotatedAt) > 16*time.Second || len(m.current) >= addresses {
		m.current, m.previous, m.rotatedAt = map[string]string{}, m.current, now
	}
	for _, branches := range []map[string]string{m.current, m.previous} {
		if first, ok := branches[key]; ok {
			return first != branch
		}
	}
	m.current[key] = branch
	return false
}
