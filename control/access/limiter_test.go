package access

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestLimiterSlides(t *testing.T) {
	var l Limiter
	t0 := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		after     time.Duration
		ok        bool
		remaining int
	}{
		{0, true, 1},
		{30 * time.Second, true, 0},
		{31 * time.Second, false, 0},
		{59 * time.Second, false, 0},
		{60 * time.Second, true, 0},
		{61 * time.Second, false, 0},
		{90 * time.Second, true, 0},
	} {
		q, ok := l.Admit("k", 2, t0.Add(tt.after))
		if ok != tt.ok || q.Remaining != tt.remaining || q.Limit != 2 {
			t.Errorf("at %v: %v %+v", tt.after, ok, q)
		}
	}
	if _, ok := l.Admit("other", 2, t0.Add(91*time.Second)); !ok {
		t.Error("keys share a log")
	}
	if _, ok := l.Admit("k", 0, t0.Add(91*time.Second)); !ok {
		t.Error("no limit refuses")
	}
}

// TestLimiterNeverExceeds: over any window, no more than the limit; and after a
// whole window of silence there is room again.
func TestLimiterNeverExceeds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Limiter
		limit := rapid.IntRange(1, 5).Draw(t, "limit")
		now := time.Unix(1e9, 0)
		var admitted []time.Time
		for range rapid.IntRange(1, 200).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20000).Draw(t, "pause")) * time.Millisecond)
			q, ok := l.Admit("k", limit, now)
			if !ok && q.Reset.After(now.Add(Window)) {
				t.Fatalf("free again only at %v", q.Reset)
			}
			if ok {
				admitted = append(admitted, now)
			}
			if n := len(recent(admitted, now)); n > limit {
				t.Fatalf("%d in a window of %d", n, limit)
			}
		}
		if _, ok := l.Admit("k", limit, now.Add(Window)); !ok {
			t.Fatal("refused a window later")
		}
	})
}

func TestBearer(t *testing.T) {
	for header, want := range map[string]string{
		"Bearer x": "x", "bearer x": "x", "BEARER  x ": "x", "": "", "x": "", "Bearer": "", "Bearer ": "", "Bearer x y": "", "Basic x": "", "Bearerx": "",
	} {
		got, ok := bearer(header)
		if got != want || ok != (want != "") {
			t.Errorf("%q: %q %v", header, got, ok)
		}
	}
}
