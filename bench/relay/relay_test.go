package relay

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

const ms = time.Millisecond

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// send sends n datagrams of 172 bytes through a path, 20 ms apart.
func send(p Path, seed uint64, n int) (outs [][]time.Duration) {
	f := NewFlow(&p, seed)
	for i := range n {
		outs = append(outs, f.Decide(nil, time.Duration(i)*20*ms, 172))
	}
	return outs
}

func TestPerfectPath(t *testing.T) {
	for i, out := range send(Path{}, 1, 100) {
		if len(out) != 1 || out[0] != time.Duration(i)*20*ms {
			t.Fatalf("datagram %d: got arrival at %v", i, out)
		}
	}
}

func TestSameSeedSameNetwork(t *testing.T) {
	p := Path{Loss: 0.1, Burst: 3, Delay: 30 * ms, Jitter: 20 * ms, Spread: Normal, Reorder: 0.02, Duplicate: 0.01}
	a, b, other := fmt.Sprint(send(p, 7, 1000)), fmt.Sprint(send(p, 7, 1000)), fmt.Sprint(send(p, 8, 1000))
	if a != b || a == other {
		t.Error("equal seeds gave different results")
	}
}

func TestLoss(t *testing.T) {
	for _, row := range []struct{ loss, burst float64 }{{0, 0}, {0.05, 0}, {0.05, 3}, {0.2, 5}, {1, 0}, {1, 3}} {
		lost, bursts, before := 0, 0, false
		const n = 50_000
		for _, out := range send(Path{Loss: row.loss, Burst: row.burst}, 3, n) {
			gone := len(out) == 0
			if gone {
				lost++
				if !before {
					bursts++
				}
			}
			before = gone
		}
		if share := float64(lost) / n; math.Abs(share-row.loss) > 0.01+row.loss/10 {
			t.Errorf("%+v: got loss %.3f", row, share)
		}
		if row.burst > 1 && row.loss < 1 {
			if mean := float64(lost) / float64(bursts); math.Abs(mean-row.burst) > row.burst/10 {
				t.Errorf("%+v: got bursts of %.2f", row, mean)
			}
		}
	}
}

func TestDelays(t *testing.T) {
	for _, row := range []struct {
		spread     Spread
		mean, most time.Duration
	}{{Even, 20 * ms, 40 * ms}, {Normal, 32 * ms, 120 * ms}, {Tailed, 40 * ms, 400 * ms}} {
		var sum, least, most time.Duration
		const n = 20_000
		least = time.Hour
		for i, out := range send(Path{Delay: 10 * ms, Jitter: 40 * ms, Spread: row.spread}, 5, n) {
			d := out[0] - time.Duration(i)*20*ms
			sum, least, most = sum+d, min(least, d), max(most, d)
		}
		if mean := sum/n - 10*ms; mean < row.mean-2*ms || mean > row.mean+2*ms || least < 10*ms || most > row.most+10*ms {
			t.Errorf("spread %d: got mean %v, from %v to %v", row.spread, mean, least, most)
		}
	}
}

func TestReorderAndDuplicate(t *testing.T) {
	early, twice := 0, 0
	for i, out := range send(Path{Delay: 50 * ms, Reorder: 0.02, Duplicate: 0.01}, 9, 20_000) {
		if out[0] == time.Duration(i)*20*ms {
			early++
		}
		twice += len(out) - 1
	}
	if early < 300 || early > 500 || twice < 140 || twice > 260 {
		t.Errorf("got %d early, %d twice", early, twice)
	}
}

func TestRate(t *testing.T) {
	// The datagrams come at twice the rate limit. The wait grows up to Backlog, then half of the
	// datagrams are lost.
	p := Path{Rate: 172 * 8 * 25, Backlog: 200 * ms}
	came, longest := 0, time.Duration(0)
	for i, out := range send(p, 1, 1000) {
		if len(out) == 1 {
			came++
			longest = max(longest, out[0]-time.Duration(i)*20*ms)
		}
	}
	if came < 490 || came > 520 || longest > 245*ms {
		t.Errorf("got %d arrivals, after up to %v", came, longest)
	}
}

func TestSkewAndOutage(t *testing.T) {
	for _, skew := range []float64{200, -200} {
		outs := send(Path{Delay: time.Second, Skew: skew}, 1, 50_001)
		want := 1000*time.Second + time.Second - time.Duration(skew*1000)*time.Microsecond
		if got := outs[50_000][0]; got != want {
			t.Errorf("%v ppm: got the last at %v, want %v", skew, got, want)
		}
	}
	for i, out := range send(Path{Outages: []Window{{From: time.Second, To: 2 * time.Second}}}, 1, 200) {
		if gone := len(out) == 0; gone != (i >= 50 && i < 100) {
			t.Errorf("datagram %d: got %v", i, out)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, bad := range []Path{
		{Loss: -1},
		{Loss: 2},
		{Loss: math.NaN()},
		{Reorder: 1.1},
		{Duplicate: -0.1},
		{Delay: -1},
		{Jitter: -1},
		{Rate: -1},
		{Backlog: -1},
		{Spread: 9},
		{Burst: -1},
		{Burst: math.Inf(1)},
		{Skew: 1e6},
		{Skew: math.NaN()},
	} {
		if bad.Check() == nil {
			t.Errorf("%+v: got no error", bad)
		}
		if (&Relay{There: bad}).Start() == nil {
			t.Errorf("%+v: relay started, want an error", bad)
		}
	}
}

// TestAnyPath checks that on any path a datagram arrives after it was sent, and at most twice.
func TestAnyPath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chance := rapid.Float64Range(0, 1)
		p := Path{
			Loss: chance.Draw(t, "loss"), Burst: rapid.Float64Range(0, 20).Draw(t, "burst"),
			Delay:  time.Duration(rapid.IntRange(0, 500).Draw(t, "delay")) * ms,
			Jitter: time.Duration(rapid.IntRange(0, 200).Draw(t, "jitter")) * ms, Spread: Spread(rapid.IntRange(0, 2).Draw(t, "spread")),
			Reorder: chance.Draw(t, "reorder"), Duplicate: chance.Draw(t, "dup"), Rate: rapid.IntRange(0, 100_000).Draw(t, "rate"),
			Skew: rapid.Float64Range(-1000, 1000).Draw(t, "skew"),
		}
		if err := p.Check(); err != nil {
			t.Skip(err) // impossible lengths of bursts
		}
		f, at := NewFlow(&p, rapid.Uint64().Draw(t, "seed")), time.Duration(0)
		for range rapid.IntRange(1, 100).Draw(t, "n") {
			at += time.Duration(rapid.IntRange(0, 100).Draw(t, "gap")) * ms
			out := f.Decide(nil, at, rapid.IntRange(0, 1500).Draw(t, "size"))
			if len(out) > 2 || slices.ContainsFunc(out, func(x time.Duration) bool { return x < at }) {
				t.Fatalf("at %v: got %v", at, out)
			}
		}
	})
}

// TestBetween checks that two sockets communicate through the relay, and that each sees the relay
// as the other socket.
func TestBetween(t *testing.T) {
	a, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	b, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	r, toB, toA, err := Between(address(a), address(b), Path{Delay: 30 * ms}, Path{Duplicate: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	buf := make([]byte, 100)
	began := time.Now()
	if _, err = a.WriteToUDPAddrPort([]byte("hello"), toB); err != nil {
		t.Fatal(err)
	}
	_ = b.SetReadDeadline(time.Now().Add(5 * time.Second))
	n, from, err := b.ReadFromUDPAddrPort(buf)
	if err != nil || string(buf[:n]) != "hello" || from.Port() != toA.Port() || time.Since(began) < 30*ms {
		t.Fatalf("b got %q of %v after %v: %v", buf[:n], from, time.Since(began), err)
	}
	stranger, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Close() }()
	_, _ = stranger.WriteToUDPAddrPort([]byte("boo"), toA)
	if _, err = b.WriteToUDPAddrPort([]byte("hi"), toA); err != nil {
		t.Fatal(err)
	}
	_ = a.SetReadDeadline(time.Now().Add(5 * time.Second))
	for range 2 {
		n, from, err = a.ReadFromUDPAddrPort(buf)
		if err != nil || string(buf[:n]) != "hi" || from.Port() != toB.Port() {
			t.Fatalf("a got %q of %v: %v", buf[:n], from, err)
		}
	}
	if s := r.Stats(); s.Flows != 1 || s.There != (Count{In: 1, Out: 1}) || s.Back != (Count{In: 1, Out: 2, Duplicate: 1}) {
		t.Errorf("%+v", s)
	}
}

func TestClientsAndCut(t *testing.T) {
	target, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = target.Close() }()
	r := &Relay{Target: address(target)}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	buf, seen := make([]byte, 100), map[netip.AddrPort]bool{}
	for range 3 {
		c, err := open()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		_, _ = c.WriteToUDPAddrPort([]byte("x"), r.Addr())
		_ = target.SetReadDeadline(time.Now().Add(5 * time.Second))
		_, from, err := target.ReadFromUDPAddrPort(buf)
		if err != nil {
			t.Fatal(err)
		}
		seen[from] = true
	}
	if len(seen) != 3 || r.Stats().Flows != 3 {
		t.Errorf("got %d addresses, want 3", len(seen))
	}
	r.Cut(true)
	_, _ = target.WriteToUDPAddrPort([]byte("x"), r.Addr()) // a client like any other
	deadline := time.After(5 * time.Second)
	for r.Stats().There.Lost != 1 {
		select {
		case <-deadline:
			t.Fatal("cut relay forwarded a datagram")
		default:
		}
	}
	for range 2 {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
