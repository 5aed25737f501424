package health

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

func TestStatus(t *testing.T) {
	a := Address{"UDP", netip.MustParseAddrPort("192.0.2.1:5060")}
	other := Address{"TCP", a.At}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, row := range map[string]struct {
		record func(b *Tracker)
		at     time.Duration
		want   Status
	}{
		"unknown":    {func(*Tracker) {}, 0, Up},
		"one miss":   {func(b *Tracker) { b.RecordMissedProbe(a, "x", start) }, 0, Up},
		"two misses": {func(b *Tracker) { b.RecordMissedProbe(a, "x", start); b.RecordMissedProbe(a, "x", start) }, 0, Down},
		"misses apart": {func(b *Tracker) {
			b.RecordMissedProbe(a, "x", start)
			b.RecordAnswer(a, start)
			b.RecordMissedProbe(a, "x", start)
		}, 0, Up},
		"silent":                   {func(b *Tracker) { b.RecordNoAnswer(a, "x", start) }, 0, Down},
		"another transport":        {func(b *Tracker) { b.RecordNoAnswer(other, "x", start) }, 0, Up},
		"tried again":              {func(b *Tracker) { b.RecordNoAnswer(a, "x", start) }, downFor, Up},
		"answered a probe":         {func(b *Tracker) { b.RecordNoAnswer(a, "x", start); b.RecordAnswer(a, start) }, 0, Up},
		"paused":                   {func(b *Tracker) { b.RecordRetryAfter(a, 30*time.Second, start, start) }, 29 * time.Second, Paused},
		"paused, answers":          {func(b *Tracker) { b.RecordRetryAfter(a, 30*time.Second, start, start); b.RecordAnswer(a, start) }, 0, Paused},
		"paused, silent":           {func(b *Tracker) { b.RecordRetryAfter(a, 30*time.Second, start, start); b.RecordNoAnswer(a, "x", start) }, 0, Paused},
		"pause is over":            {func(b *Tracker) { b.RecordRetryAfter(a, 30*time.Second, start, start) }, 30 * time.Second, Up},
		"one Retry-After of 1 h":   {func(b *Tracker) { b.RecordRetryAfter(a, time.Hour, start, start) }, maxFirstPause, Up},
		"one Retry-After of 2 min": {func(b *Tracker) { b.RecordRetryAfter(a, 2*time.Minute, start, start) }, maxFirstPause - 1, Paused},
		"a short pause":            {func(b *Tracker) { b.RecordRetryAfter(a, 5*time.Second, start, start) }, 5 * time.Second, Up},
		"concurrent responses": {func(b *Tracker) {
			b.RecordRetryAfter(a, time.Hour, start, start)
			b.RecordRetryAfter(a, time.Hour, start.Add(-1), start.Add(time.Second))
		}, maxFirstPause + time.Second, Up},
		"repeated by a probe": {func(b *Tracker) {
			b.RecordRetryAfter(a, 2*time.Minute, start, start)
			b.RecordRetryAfter(a, 2*time.Minute, start.Add(5e9), start.Add(5e9))
		}, 2*time.Minute + 4*time.Second, Paused},
		"repeated, at its end": {func(b *Tracker) {
			b.RecordRetryAfter(a, 2*time.Minute, start, start)
			b.RecordRetryAfter(a, 2*time.Minute, start.Add(5e9), start.Add(5e9))
		}, 2*time.Minute + 5*time.Second, Up},
		"repeated after the pause": {func(b *Tracker) {
			b.RecordRetryAfter(a, time.Hour, start, start)
			b.RecordRetryAfter(a, time.Hour, start.Add(31e9), start.Add(31e9))
		}, maxPause + 30*time.Second, Paused},
		"ten minutes at most": {func(b *Tracker) {
			b.RecordRetryAfter(a, time.Hour, start, start)
			b.RecordRetryAfter(a, time.Hour, start.Add(31e9), start.Add(31e9))
		}, maxPause + 31*time.Second, Up},
		"confirmed by failed probes": {func(b *Tracker) {
			b.RecordRetryAfter(a, 2*time.Minute, start, start)
			b.RecordMissedProbe(a, "x", start)
			b.RecordMissedProbe(a, "x", start)
		}, 119 * time.Second, Paused},
		"confirmed, at its end": {func(b *Tracker) {
			b.RecordRetryAfter(a, 2*time.Minute, start, start)
			b.RecordMissedProbe(a, "x", start)
			b.RecordMissedProbe(a, "x", start)
		}, 120 * time.Second, Up},
		"one failed probe": {func(b *Tracker) {
			b.RecordRetryAfter(a, 2*time.Minute, start, start)
			b.RecordMissedProbe(a, "x", start)
		}, maxFirstPause, Up},
		"a call was accepted in between": {func(b *Tracker) {
			b.RecordRetryAfter(a, time.Hour, start, start)
			b.RecordAccepted(a, start.Add(31e9))
			b.RecordRetryAfter(a, time.Hour, start.Add(40e9), start.Add(40e9))
		}, 70 * time.Second, Up},
		"an earlier call was accepted": {func(b *Tracker) {
			b.RecordRetryAfter(a, time.Hour, start, start)
			b.RecordAccepted(a, start.Add(-1))
			b.RecordRetryAfter(a, time.Hour, start.Add(40e9), start.Add(40e9))
		}, 71 * time.Second, Paused},
		"long ago": {func(b *Tracker) {
			b.RecordRetryAfter(a, time.Minute, start, start)
			b.RecordRetryAfter(a, time.Minute, start.Add(time.Hour), start.Add(time.Hour))
		}, time.Hour + maxFirstPause, Up},
	} {
		var b Tracker
		row.record(&b)
		if got, _ := b.Status(a, start.Add(row.at)); got != row.want {
			t.Errorf("%s: %d, want %d", name, got, row.want)
		}
	}
}

// TestPrune checks that other addresses are removed, except those that calls must avoid.
func TestPrune(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(n uint16) Address {
		return Address{"UDP", netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), n)}
	}
	var b Tracker
	b.RecordAnswer(at(1), start)
	b.RecordAnswer(at(2), start)
	b.RecordNoAnswer(at(3), "x", start)
	b.RecordRetryAfter(at(4), 30*time.Second, start, start)
	ports := func(now time.Time) (ports []uint16) {
		for _, s := range b.States(now) {
			ports = append(ports, s.Address.At.Port())
		}
		return ports
	}
	b.Prune(map[Address]bool{at(1): true}, start)
	if got := ports(start); !slices.Equal(got, []uint16{1, 3, 4}) {
		t.Errorf("at once: %v", got)
	}
	b.Prune(nil, start.Add(downFor))
	if got := ports(start.Add(downFor)); !slices.Equal(got, []uint16{4}) {
		t.Errorf("after %v: %v", downFor, got)
	}
	if !b.AnyPaused(start.Add(time.Minute)) || b.AnyPaused(start.Add(maxFirstPause+maxPause)) {
		t.Error("AnyPaused is wrong")
	}
	b.Prune(nil, start.Add(maxFirstPause+maxPause))
	if got := ports(start.Add(maxFirstPause + maxPause)); len(got) != 0 {
		t.Errorf("after a long time: %v", got)
	}
}

// TestAdmitAfterPause checks that after a pause one call every 2 s tries the address, until it accepts
// one.
func TestAdmitAfterPause(t *testing.T) {
	a := Address{"UDP", netip.MustParseAddrPort("192.0.2.1:5060")}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var b Tracker
	b.RecordRetryAfter(a, 5*time.Second, start, start)
	var tried []time.Duration
	for d := time.Duration(0); d < 12*time.Second; d += 100 * time.Millisecond {
		if d == 10*time.Second {
			b.RecordAccepted(a, start.Add(9*time.Second))
		}
		if v, until := b.Status(a, start.Add(d)); v == Paused && !until.After(start.Add(d)) {
			t.Errorf("paused at %v until %v", d, until)
		}
		if b.Admit(a, start.Add(d)) == Up && d <= 10*time.Second+100*time.Millisecond {
			tried = append(tried, d)
		}
	}
	if want := []time.Duration{5e9, 7e9, 9e9, 10e9, 10.1e9}; !slices.Equal(tried, want) {
		t.Errorf("calls at %v, want %v", tried, want)
	}
}

// TestMaxAddresses checks that the number of tracked addresses is bounded in any state.
func TestMaxAddresses(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, record := range map[string]func(b *Tracker, a Address){
		"up":   func(b *Tracker, a Address) { b.RecordAnswer(a, start) },
		"down": func(b *Tracker, a Address) { b.RecordNoAnswer(a, "x", start) },
	} {
		var b Tracker
		var last Address
		for n := range uint16(2 * maxAddresses) {
			last = Address{"UDP", netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), n)}
			record(&b, last)
		}
		states := b.States(start)
		if len(states) > maxAddresses || !slices.ContainsFunc(states, func(s State) bool { return s.Address == last }) {
			t.Errorf("%s: %d tracked, want %d with the last one", name, len(states), maxAddresses)
		}
	}
}

func TestStates(t *testing.T) {
	var b Tracker
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	a := Address{"UDP", netip.MustParseAddrPort("192.0.2.2:5060")}
	b.RecordAnswer(Address{"TCP", netip.MustParseAddrPort("192.0.2.1:5060")}, start)
	b.RecordNoAnswer(a, "no answer to INVITE", start.Add(time.Second))
	got := b.States(start.Add(2 * time.Second))
	if len(got) != 2 || got[0].Status != Up || got[1].Status != Down || got[1].Reason != "no answer to INVITE" || !got[1].Since.Equal(start.Add(time.Second)) {
		t.Errorf("%+v", got)
	}
	if later := b.States(start.Add(time.Hour)); later[1].Status != Up {
		t.Errorf("%+v", later[1])
	}
}
