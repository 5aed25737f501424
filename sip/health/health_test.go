package health

import (
	"net/netip"
	"testing"
	"time"
)

func TestBook(t *testing.T) {
	a := Address{"UDP", netip.MustParseAddrPort("192.0.2.1:5060")}
	other := Address{"TCP", a.At}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, row := range map[string]struct {
		does func(b *Book)
		at   time.Duration
		want Verdict
	}{
		"unknown":               {func(*Book) {}, 0, Up},
		"one miss":              {func(b *Book) { b.Missed(a, start) }, 0, Up},
		"two misses":            {func(b *Book) { b.Missed(a, start); b.Missed(a, start) }, 0, Down},
		"misses apart":          {func(b *Book) { b.Missed(a, start); b.Answered(a, start); b.Missed(a, start) }, 0, Up},
		"silent":                {func(b *Book) { b.Silent(a, "x", start) }, 0, Down},
		"another transport":     {func(b *Book) { b.Silent(other, "x", start) }, 0, Up},
		"tried again":           {func(b *Book) { b.Silent(a, "x", start) }, tryAgain, Up},
		"found well by a probe": {func(b *Book) { b.Silent(a, "x", start); b.Answered(a, start) }, 0, Up},
		"barred":                {func(b *Book) { b.Bar(a, 30*time.Second, start) }, 29 * time.Second, Barred},
		"barred, and answers":   {func(b *Book) { b.Bar(a, 30*time.Second, start); b.Answered(a, start) }, 0, Barred},
		"barred, and silent":    {func(b *Book) { b.Bar(a, 30*time.Second, start); b.Silent(a, "x", start) }, 0, Barred},
		"no longer barred":      {func(b *Book) { b.Bar(a, 30*time.Second, start) }, 30 * time.Second, Up},
		"barred for ever":       {func(b *Book) { b.Bar(a, 1e6*time.Hour, start) }, longest, Up},
		"forgotten":             {func(b *Book) { b.Silent(a, "x", start); b.Forget([]Address{other}) }, 0, Up},
		"kept":                  {func(b *Book) { b.Silent(a, "x", start); b.Forget([]Address{a}) }, 0, Down},
	} {
		var b Book
		row.does(&b)
		if got := b.Verdict(a, start.Add(row.at)); got != row.want {
			t.Errorf("%s: %d, want %d", name, got, row.want)
		}
	}
}

func TestStates(t *testing.T) {
	var b Book
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	a := Address{"UDP", netip.MustParseAddrPort("192.0.2.2:5060")}
	b.Answered(Address{"TCP", netip.MustParseAddrPort("192.0.2.1:5060")}, start)
	b.Silent(a, "no answer to INVITE", start.Add(time.Second))
	got := b.States(start.Add(2 * time.Second))
	if len(got) != 2 || got[0].Verdict != Up || got[1].Verdict != Down || got[1].Reason != "no answer to INVITE" || !got[1].Since.Equal(start.Add(time.Second)) {
		t.Errorf("%+v", got)
	}
	if later := b.States(start.Add(time.Hour)); later[1].Verdict != Up {
		t.Errorf("%+v", later[1])
	}
}
