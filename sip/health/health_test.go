package health

import (
	"net/netip"
	"slices"
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
		"one miss":              {func(b *Book) { b.Missed(a, "x", start) }, 0, Up},
		"two misses":            {func(b *Book) { b.Missed(a, "x", start); b.Missed(a, "x", start) }, 0, Down},
		"misses apart":          {func(b *Book) { b.Missed(a, "x", start); b.Answered(a, start); b.Missed(a, "x", start) }, 0, Up},
		"silent":                {func(b *Book) { b.Silent(a, "x", start) }, 0, Down},
		"another transport":     {func(b *Book) { b.Silent(other, "x", start) }, 0, Up},
		"tried again":           {func(b *Book) { b.Silent(a, "x", start) }, tryAgain, Up},
		"found well by a probe": {func(b *Book) { b.Silent(a, "x", start); b.Answered(a, start) }, 0, Up},
		"barred":                {func(b *Book) { b.Bar(a, 30*time.Second, start) }, 29 * time.Second, Barred},
		"barred, and answers":   {func(b *Book) { b.Bar(a, 30*time.Second, start); b.Answered(a, start) }, 0, Barred},
		"barred, and silent":    {func(b *Book) { b.Bar(a, 30*time.Second, start); b.Silent(a, "x", start) }, 0, Barred},
		"no longer barred":      {func(b *Book) { b.Bar(a, 30*time.Second, start) }, 30 * time.Second, Up},
		"barred for ever":       {func(b *Book) { b.Bar(a, 1e6*time.Hour, start) }, longest, Up},
	} {
		var b Book
		row.does(&b)
		if got := b.Verdict(a, start.Add(row.at)); got != row.want {
			t.Errorf("%s: %d, want %d", name, got, row.want)
		}
	}
}

// TestForget drops what is known of others, but sends no call where it must not
// go.
func TestForget(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(n uint16) Address {
		return Address{"UDP", netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), n)}
	}
	var b Book
	b.Answered(at(1), start)
	b.Answered(at(2), start)
	b.Silent(at(3), "x", start)
	b.Bar(at(4), time.Minute, start)
	known := func(now time.Time) (ports []uint16) {
		for _, s := range b.States(now) {
			ports = append(ports, s.Address.At.Port())
		}
		return ports
	}
	b.Forget(map[Address]bool{at(1): true}, start)
	if got := known(start); !slices.Equal(got, []uint16{1, 3, 4}) {
		t.Errorf("at once: %v", got)
	}
	b.Forget(nil, start.Add(tryAgain))
	if got := known(start.Add(tryAgain)); !slices.Equal(got, []uint16{4}) {
		t.Errorf("after %v: %v", tryAgain, got)
	}
	b.Forget(nil, start.Add(time.Minute))
	if got := known(start.Add(time.Minute)); len(got) != 0 {
		t.Errorf("after a minute: %v", got)
	}
}

// TestMost bounds what is known, whether addresses are well or not.
func TestMost(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, note := range map[string]func(b *Book, a Address){
		"well": func(b *Book, a Address) { b.Answered(a, start) },
		"down": func(b *Book, a Address) { b.Silent(a, "x", start) },
	} {
		var b Book
		var last Address
		for n := range uint16(2 * most) {
			last = Address{"UDP", netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), n)}
			note(&b, last)
		}
		states := b.States(start)
		if len(states) > most || !slices.ContainsFunc(states, func(s State) bool { return s.Address == last }) {
			t.Errorf("%s: %d are known, at most %d and the last one", name, len(states), most)
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
