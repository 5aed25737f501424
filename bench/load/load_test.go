package load

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-voice/parley/bench/callee"
	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline/eot"
)

// TestDues checks that calls are due at fixed times. All slots start within the ramp, and each
// slot starts a call every hold time.
func TestDues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{
			Length: time.Duration(rapid.IntRange(1, 60).Draw(t, "length")) * time.Second,
			Hold:   time.Duration(rapid.IntRange(5, 60).Draw(t, "hold")) * time.Second,
			Ramp:   time.Duration(rapid.IntRange(0, 20).Draw(t, "ramp")) * time.Second, Settle: 5 * time.Second,
		}
		p := o.plan(rapid.IntRange(1, 800).Draw(t, "calls"))
		if p.to-p.from < o.Length || p.to-p.from > patient*o.Length || p.from < p.ramp {
			t.Fatalf("%+v", p)
		}
		for slot := range p.calls {
			dues := p.dues(slot)
			if dues[0] < 0 || dues[0] > p.ramp {
				t.Fatalf("slot %d starts at %v, ramp is %v", slot, dues[0], p.ramp)
			}
			for i := range dues[1:] {
				if dues[i+1]-dues[i] != o.Hold {
					t.Fatalf("%v", dues)
				}
			}
			if last := dues[len(dues)-1]; last >= p.to || last+o.Hold < p.to {
				t.Fatalf("the last of %v is not the last before %v", dues, p.to)
			}
		}
	})
}

func TestCheck(t *testing.T) {
	good := Options{Steps: []int{1, 3}, Length: time.Second, Hold: 5 * time.Second}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Options){
		"no step":     func(o *Options) { o.Steps = nil },
		"descending":  func(o *Options) { o.Steps = []int{3, 1} },
		"zero calls":  func(o *Options) { o.Steps = []int{0} },
		"too many":    func(o *Options) { o.Steps = []int{most + 1} },
		"no length":   func(o *Options) { o.Length = 0 },
		"short calls": func(o *Options) { o.Hold = time.Second },
	} {
		o := good
		if change(&o); o.Check() == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

// TestScript checks that callees say only lines after which the agent answers without an endpointing wait.
func TestScript(t *testing.T) {
	texts := sentences(7)
	if len(texts) != manyLines || len(script(7)) != manyLines {
		t.Fatalf("got %d lines", len(texts))
	}
	for _, text := range texts {
		if g := (eot.Pause{Text: text, Language: "en"}).Guess(); g.P < sure {
			t.Errorf("%q is %v", text, g)
		}
	}
}

// heardCall returns a record of one line and its answer. The last packet of the line leaves at
// 1 s, the answer starts 440 ms later, and packets arrive every 20 ms unless they are late or
// lost.
func heardCall(lateBy time.Duration, lost bool) (callee.Record, []callee.Line, time.Time) {
	began := time.Unix(1000, 0)
	line := callee.Line{PCM: tone.Sine(rate, rate, 400, .3)}
	r := callee.Record{Answered: began, Ended: began.Add(3 * time.Second), Heard: callee.Track{Rate: rate}}
	s := callee.Spoken{}
	for i := range 50 {
		s.Left = append(s.Left, began.Add(time.Duration(i+1)*20*time.Millisecond))
	}
	r.Said = []callee.Spoken{s}
	for i := range 150 {
		at, pcm := began.Add(time.Duration(i)*20*time.Millisecond), make([]int16, 160)
		if i >= 72 {
			pcm = tone.Sine(rate, 160, 500, .3)
		}
		if i == 100 {
			at = at.Add(lateBy)
		}
		r.Heard.PCM, r.Heard.At, r.Heard.Real = append(r.Heard.PCM, pcm...), append(r.Heard.At, at), append(r.Heard.Real, !lost || i != 101)
	}
	return r, []callee.Line{line}, began
}

func TestObserve(t *testing.T) {
	for name, c := range map[string]struct {
		lateBy     time.Duration
		lost       bool
		late, came int
	}{
		"in time":                       {0, false, 0, 149},
		"late, but in time to be heard": {30 * time.Millisecond, false, 0, 149},
		"too late":                      {90 * time.Millisecond, false, 1, 149},
		"one packet lost":               {0, true, 0, 148},
	} {
		r, lines, began := heardCall(c.lateBy, c.lost)
		o := observe(r, lines, began, began.Add(time.Minute))
		if len(o.turns) != 1 || o.dead != 0 || o.due != 149 || o.came != c.came || o.late != c.late {
			t.Errorf("%s: got %d turns, %d dead, %d of %d packets, %d late", name, len(o.turns), o.dead, o.came, o.due, o.late)
			continue
		}
		x := o.turns[0]
		if x.wire != 440 || x.ear < x.wire || x.own != x.ear-440 {
			t.Errorf("%s: got %+v", name, x)
		}
	}
	r, lines, began := heardCall(0, false)
	if o := observe(r, lines, began.Add(2*time.Second), began.Add(time.Minute)); len(o.turns) != 0 || o.due != 50 {
		t.Errorf("other time range: got %d turns, %d packets", len(o.turns), o.due)
	}
	clear(r.Heard.PCM)
	if o := observe(r, lines, began, began.Add(time.Minute)); len(o.turns) != 0 || o.dead != 0 {
		t.Errorf("call that ended at once: got %+v", o)
	}
	r.Ended = began.Add(10 * time.Second)
	if o := observe(r, lines, began, began.Add(time.Minute)); o.dead != 1 {
		t.Errorf("no answer: got %+v", o)
	}
}

// healthyStep returns a step without problems.
func healthyStep(calls int) *stepResult {
	return &stepResult{
		plan: plan{calls: calls}, own: slices.Repeat([]float64{20}, 100), orders: calls, due: 10000, came: 10000, ticks: []float64{.1},
		shares: shares{server: .2, all: .4},
	}
}

func TestKnee(t *testing.T) {
	for name, c := range map[string]struct {
		change      func(*stepResult)
		knee, limit string
	}{
		"nothing":          {func(*stepResult) {}, "", "not reached: 100 calls carried"},
		"slow":             {func(m *stepResult) { m.own = slices.Repeat([]float64{41}, 100) }, "p95 overhead is 21 ms above", "CPU was not the limit"},
		"late packets":     {func(m *stepResult) { m.lateCame = 11 }, "packets were late", "CPU was not the limit"},
		"missing packets":  {func(m *stepResult) { m.came = 9989 }, "packets were lost", "CPU was not the limit"},
		"busy":             {func(m *stepResult) { m.shares = shares{server: .7, postgres: .12, all: .95} }, "used 82% of the machine", "CPU was the limit: server 70%"},
		"other processes":  {func(m *stepResult) { m.shares, m.lateCame = shares{server: .3, all: .99}, 50 }, "packets were late", "mostly used by other processes"},
		"dead":             {func(m *stepResult) { m.dead = 3 }, "had no answer", "CPU was not the limit"},
		"calls fail":       {func(m *stepResult) { m.unanswered, m.refused = 1, 1 }, "2 of 100 calls", "CPU was not the limit"},
		"deaf":             {func(m *stepResult) { m.own = nil }, "no audio was received", "CPU was not the limit"},
		"a late generator": {func(m *stepResult) { m.ticks = []float64{30} }, "", "The load generator was the limit"},
	} {
		m := healthyStep(100)
		c.change(m)
		why := m.knee(healthyStep(1))
		if (c.knee == "") != (len(why) == 0) || !strings.Contains(strings.Join(why, "; "), c.knee) {
			t.Errorf("%s: got reasons %q", name, why)
		}
		if got := m.limit(why, m.punctuality().P99.Value > maxLateness); !strings.Contains(got, c.limit) {
			t.Errorf("%s: got limit %q", name, got)
		}
	}
}

func TestPauses(t *testing.T) {
	before := readPauses([]byte("heap profile: 1\n# NumGC = 2\n# PauseNs = [1000000 2000000 0 0]\n"))
	after := readPauses([]byte("# NumGC = 5\n# PauseNs = [5000000 2000000 3000000 4000000]\n"))
	if got := after.since(before); !slices.Equal(got, []float64{3, 4, 5}) {
		t.Errorf("%v", got)
	}
	if got := (pauses{}).since(pauses{}); got != nil {
		t.Errorf("%v", got)
	}
}

func TestMetrics(t *testing.T) {
	m := healthyStep(targetLoad)
	m.own = slices.Repeat([]float64{35}, 200)
	for _, x := range m.metrics(healthyStep(1)) {
		if x.Calls != targetLoad {
			t.Errorf("%s is of %d calls", x.Name, x.Calls)
		}
		if x.Name == "overhead_above_ms" && (x.Judge() != "missed" || x.Figure.Low > 15.1 || x.Figure.High < 14.9) {
			t.Errorf("%+v: %s", x.Figure, x.Judge())
		}
	}
}

// TestDeafMetrics checks that a step without audio has no response times, and that its result can be written.
func TestDeafMetrics(t *testing.T) {
	m := healthyStep(targetLoad)
	m.own = nil
	s := step{all: []*placedCall{{refused: true}, {refused: true}}}
	s.gather(t.Context(), m)
	if m.orders != 2 || m.refused != 2 || m.unanswered != 0 {
		t.Errorf("2 call requests: got %d refused and %d not answered", m.refused, m.unanswered)
	}
	all := m.metrics(healthyStep(1))
	for _, x := range all {
		if x.Name == "overhead_above_ms" && x.Judge() != result.Unknown {
			t.Errorf("%+v: %s", x.Figure, x.Judge())
		}
	}
	if _, err := json.Marshal(all); err != nil {
		t.Error(err)
	}
}
