package control

import (
	"testing"
	"time"
)

// A loadModel simulates a process: the CPU time and the lateness that its conversations cause.
type loadModel struct {
	limit    *LoadLimit
	now      time.Time
	cost     float64 // processors of a conversation
	knee     int     // conversations above which ticks are late
	noise    bool    // other processes make ticks late
	used     time.Duration
	ticks    int64
	late     int64
	ringing  []time.Duration // remaining time of each ringing call
	talking  []time.Duration // remaining time of each conversation
	lateTime int             // seconds with more than 2 % late ticks
	most     int             // most conversations
}

// second passes a second. It starts as many calls as there is room for, but at most orders.
func (m *loadModel) second(orders int, ring, talk time.Duration) (started int) {
	for ; started < orders; started++ {
		if room, _ := m.limit.Room(len(m.ringing) + len(m.talking)); room <= 0 {
			break
		}
		m.ringing = append(m.ringing, ring)
	}
	m.now = m.now.Add(time.Second)
	m.used += time.Duration(m.cost * float64(len(m.talking)) * float64(time.Second))
	m.ticks += 200
	if m.noise || len(m.talking) > m.knee {
		m.late += 40
		m.lateTime++
	}
	m.most = max(m.most, len(m.talking))
	still := m.talking[:0]
	for _, left := range m.talking {
		if left > time.Second {
			still = append(still, left-time.Second)
		}
	}
	m.talking = still
	rings := m.ringing[:0]
	for _, left := range m.ringing {
		if left > time.Second {
			rings = append(rings, left-time.Second)
		} else {
			m.talking = append(m.talking, talk)
		}
	}
	m.ringing = rings
	m.limit.Observe(LoadSample{At: m.now, CPU: m.used, Ticks: m.ticks, Late: m.late, Talking: len(m.talking)},
		len(m.ringing)+len(m.talking))
	return started
}

func newLoadModel(processors, cost float64, knee int) *loadModel {
	m := &loadModel{limit: &LoadLimit{Processors: processors}, now: time.Unix(1_700_000_000, 0), cost: cost, knee: knee}
	m.limit.Observe(LoadSample{At: m.now}, 0)
	return m
}

// TestLoadLimitByCPU orders far more calls than the processors hold. All of them ring long before they are answered.
// The conversations must not use more than the allowed share, and at least four fifths of it in the end.
func TestLoadLimitByCPU(t *testing.T) {
	for _, cost := range []float64{0.003, 0.005, 0.0099} {
		m := newLoadModel(2, cost, 1<<30)
		for range 600 {
			m.second(1000, 20*time.Second, time.Minute)
		}
		allowed := maxCPU * 2 / cost
		if got := float64(m.most); got > allowed*1.05 {
			t.Errorf("cost %v: %v conversations, allowed %v", cost, got, allowed)
		}
		if got := float64(len(m.talking) + len(m.ringing)); got < allowed*0.8 {
			t.Errorf("cost %v: %v calls after 10 min, want about %v", cost, got, allowed)
		}
		if n, hold := m.limit.Room(int(allowed * 1.2)); n != 0 || hold != HoldCPU {
			t.Errorf("cost %v: room %d beside too many calls, hold %q", cost, n, hold)
		}
	}
}

// TestLoadLimitByLateness lets the media clock be late although the process has CPU time left, because other processes
// use the machine.
func TestLoadLimitByLateness(t *testing.T) {
	m := newLoadModel(4, 0.004, 100)
	for range 300 { // learns that the machine holds 100 calls
		m.second(5, 10*time.Second, time.Minute)
	}
	m.lateTime = 0
	for range 1500 {
		m.second(5, 10*time.Second, time.Minute)
	}
	if share := float64(m.lateTime) / 1500; share > 0.1 {
		t.Errorf("ticks were late in %.0f %% of the time", 100*share)
	}
	if got := len(m.talking) + len(m.ringing); got < 70 {
		t.Errorf("%d calls after 30 min, want about 100", got)
	}
}

// TestLoadLimitHolds checks the state during and after a time with late ticks.
func TestLoadLimitHolds(t *testing.T) {
	m := newLoadModel(4, 0.004, 1<<30)
	for range 20 {
		m.second(5, time.Second, time.Hour)
	}
	room := func() (int, Hold) { return m.limit.Room(len(m.talking) + len(m.ringing)) }
	if n, hold := room(); n == 0 || hold != "" {
		t.Fatalf("before: room %d, %q", n, hold)
	}
	m.noise = true
	m.second(5, time.Second, time.Hour)
	for range 10 {
		if started := m.second(5, time.Second, time.Hour); started > 0 {
			t.Fatal("a call started while ticks were late")
		}
	}
	if n, hold := room(); n != 0 || hold != HoldLateMedia {
		t.Errorf("during: room %d, %q", n, hold)
	}
	m.noise = false
	calm := 0
	for calm < 300 && m.second(5, time.Second, time.Hour) == 0 {
		calm++
	}
	if calm < 5 || calm == 300 {
		t.Errorf("calls start again after %d s without late ticks", calm)
	}
	m.talking, m.ringing = nil, nil
	for range 3600 {
		m.second(0, 0, 0)
	}
	if n, hold := m.limit.Room(1); n < 600 || hold != "" {
		t.Errorf("an hour later: room %d, %q", n, hold)
	}
}

// TestLoadLimitRecovers makes ticks late for a few seconds while 10 calls run, and orders many calls. The node must run
// a hundred calls two minutes later.
func TestLoadLimitRecovers(t *testing.T) {
	m := newLoadModel(2, 0.004, 1<<30)
	for range 10 {
		m.second(1, time.Second, time.Hour)
	}
	m.noise = true
	for range 3 {
		m.second(100, time.Second, time.Hour)
	}
	m.noise = false
	for range 120 {
		m.second(100, time.Second, time.Hour)
	}
	if got := len(m.talking); got < 100 {
		t.Errorf("%d conversations two minutes after the noise, want at least 100", got)
	}
}

// TestLoadLimitOneCall checks that a node without calls can start one, whatever the load.
func TestLoadLimitOneCall(t *testing.T) {
	m := newLoadModel(1, 0, 0)
	m.noise = true
	for range 20 {
		m.used += time.Second
		m.second(0, 0, 0)
	}
	if n, hold := m.limit.Room(0); n != 1 || hold != "" {
		t.Errorf("room %d, %q", n, hold)
	}
	if n, _ := m.limit.Room(1); n > 0 {
		t.Errorf("room %d beside one call", n)
	}
}
