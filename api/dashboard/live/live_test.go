package live

import (
	"strings"
	"testing"
	"time"
)

func TestProvider(t *testing.T) {
	now := time.Date(2026, 11, 22, 14, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		p           Provider
		state, says string
	}{
		{Provider{}, "up", "It is asked."},
		{Provider{Asked: 3, Most: 4}, "up", "It is asked."},
		{Provider{Asked: 4, Most: 4}, "degraded", "as many at a time as it may"},
		{Provider{Open: true, Until: now.Add(time.Second)}, "down", "left alone until 15:00:01;"},
		{Provider{Open: true, Until: now}, "degraded", "the next call tries"},
		{Provider{Open: true, Until: now.Add(-time.Hour), Asked: 4, Most: 4}, "degraded", "the next call tries"},
		{Provider{Open: true, Tried: true, Until: now.Add(time.Second)}, "degraded", "One call tries"},
	} {
		s := judge(c.p, now, time.FixedZone("", 3600))
		if s.State != c.state || !strings.Contains(s.Says, c.says) {
			t.Errorf("%+v is %s: %s", c.p, s.State, s.Says)
		}
	}
}
