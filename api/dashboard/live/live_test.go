package live

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/api/dashboard/ui"
)

// TestStreamLimits checks that sessions and organizations have limits of streams.
func TestStreamLimits(t *testing.T) {
	l := &Live{}
	var leave []func()
	enter := func(session, org string) bool {
		done, ok := l.enter(session, org)
		if ok {
			leave = append(leave, done)
		}
		return ok
	}
	for range mostSessions {
		if !enter("a", "acme") {
			t.Fatal("rejected below the limit")
		}
	}
	if enter("a", "acme") || !enter("b", "acme") {
		t.Error("the limit of a session is not separate")
	}
	for i := range mostOfOrg {
		enter(fmt.Sprint(i), "acme")
	}
	if len(leave) != mostOfOrg || !enter("c", "globex") {
		t.Errorf("%d streams of one organization", len(leave))
	}
	for _, done := range leave {
		done()
	}
	if len(l.streams) != 0 || !enter("a", "acme") {
		t.Errorf("streams after the end: %v", l.streams)
	}
}

func TestProvider(t *testing.T) {
	texts, err := ui.ReadTexts(nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 22, 14, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		p           Provider
		state, text string
	}{
		{Provider{}, "up", "Healthy"},
		{Provider{Active: 3, Limit: 4}, "up", "Healthy"},
		{Provider{Active: 4, Limit: 4}, "degraded", "At its concurrency limit"},
		{Provider{Open: true, Until: now.Add(time.Second)}, "down", "Suspended after repeated failures until 15:00:01;"},
		{Provider{Open: true, Until: now}, "degraded", "the next call probes it"},
		{Provider{Open: true, Until: now.Add(-time.Hour), Active: 4, Limit: 4}, "degraded", "the next call probes it"},
		{Provider{Open: true, Probing: true, Until: now.Add(time.Second)}, "degraded", "One call is testing it"},
	} {
		s := assess(texts, c.p, now, ui.Dates{Zone: time.FixedZone("", 3600)})
		if s.State != c.state || !strings.Contains(s.Text, c.text) {
			t.Errorf("%+v is %s: %s", c.p, s.State, s.Text)
		}
	}
}
