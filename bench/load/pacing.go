package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/parley-voice/parley/bench/machine"
	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/server"
	"github.com/parley-voice/parley/sip/siptest"
)

// PacingOptions configure RunPacing.
type PacingOptions struct {
	Pace      int           // calls per minute of each campaign; the API accepts only some values
	Campaigns int           // number of concurrent campaigns
	Length    time.Duration // measured time from the first call on
	Child     func(ctx context.Context, args ...string) *exec.Cmd
	Progress  func(done, all int)
	Out, Log  io.Writer
}

// pacingFile is an operator's file. It lets an organization call at any hour, without limits.
const pacingFile = `
organizations:
- name: bench
  timezone: Asia/Almaty
  market: kz
  calling_window: {days: [0, 1, 2, 3, 4, 5, 6], start: "00:00", end: "23:59"}
  agents:
  - {name: bench, published: true, greeting: "hello", analysis: {summary: false, success: false},
     speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}
  trunks:
  - name: bench
    proxy: %q
    caller_numbers: ["+77012345678"]
    subgroups: [{name: all, allowed_destinations: ["7"], agents: [bench], concurrent_calls: 10000, calls_per_minute: 100000}]
`

// arrivals are the arrival times of calls.
type arrivals struct {
	first chan struct{}
	mu    sync.Mutex
	at    []time.Time
}

func (s *arrivals) onInvite(i siptest.Invite) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at = append(s.at, i.At); len(s.at) == 1 {
		close(s.first)
	}
}

// RunPacing measures how evenly campaigns place calls. It uploads contacts to a "parley serve"
// over HTTP, records when calls arrive at a scripted carrier, and adds the metrics to f.
func RunPacing(ctx context.Context, o PacingOptions, f *result.File) (err error) {
	if o.Pace < 1 || o.Campaigns < 1 || o.Length < 10*time.Second {
		return fmt.Errorf("pace %d, %d campaigns, length %v: want at least 1, 1 and 10s", o.Pace, o.Campaigns, o.Length)
	}
	seen := arrivals{first: make(chan struct{})}
	carrier := &siptest.Carrier{
		Listen: "127.0.0.1:0", OnInvite: seen.onInvite,
		Answer: func(siptest.Invite) siptest.Script { return siptest.Script{Status: 486} },
	}
	if err = carrier.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, carrier.Close()) }()
	s := &server.Server{Child: o.Child, Log: o.Log}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if err = s.Start(ctx); err != nil {
		return err
	}
	if err = s.Configure(ctx, "bench", fmt.Sprintf(pacingFile, carrier.Proxy())); err != nil {
		return err
	}
	launched := time.Now()
	for n := range o.Campaigns {
		if err = o.launch(ctx, s, n); err != nil {
			return err
		}
	}
	cpu := machine.CPUTime(s.PID)
	if err = o.wait(ctx, seen.first); err != nil {
		return err
	}
	spent := machine.CPUTime(s.PID)
	seen.mu.Lock()
	at := slices.Clone(seen.at)
	seen.mu.Unlock()
	o.judge(f, at, at[0].Sub(launched), spent.Own+spent.Below-cpu.Own-cpu.Below)
	return f.Table(o.Out)
}

// launch starts campaign n with more contacts than it can call in Length.
func (o PacingOptions) launch(ctx context.Context, s *server.Server, n int) error {
	var rows []map[string]any
	for i := range int(1.2*o.due()/float64(o.Campaigns)) + o.Pace {
		rows = append(rows, map[string]any{"phone": fmt.Sprintf("+770%02d%06d", 10+n%80, i)})
	}
	var c struct {
		Status   string           `json:"status"`
		Blockers []map[string]any `json:"blockers"`
	}
	err := s.Post(ctx, "/v1/campaigns", map[string]any{
		"name": fmt.Sprintf("bench %d", n), "agent_id": "bench", "calls_per_minute": o.Pace, "planned_calls": rows,
		"attestation": map[string]any{"confirmed": true},
	}, &c)
	if err == nil && c.Status != "running" {
		err = fmt.Errorf("campaign %d is %s: %v", n, c.Status, c.Blockers)
	}
	return err
}

// due returns the number of calls that the campaigns should place in Length.
func (o PacingOptions) due() float64 { return float64(o.Pace*o.Campaigns) * o.Length.Minutes() }

// firstCallLimit is the longest wait for the first call.
const firstCallLimit = time.Minute

// wait waits for the first call, then for Length.
func (o PacingOptions) wait(ctx context.Context, first <-chan struct{}) error {
	select {
	case <-first:
	case <-time.After(firstCallLimit):
		return fmt.Errorf("no call was placed within %v", firstCallLimit)
	case <-ctx.Done():
		return ctx.Err()
	}
	all := int(o.Length.Seconds())
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := range all {
		select {
		case <-tick.C:
			o.Progress(n+1, all)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// judge adds the metrics to f: number, evenness and cost of the calls.
func (o PacingOptions) judge(f *result.File, at []time.Time, first, cpu time.Duration) {
	slices.SortFunc(at, time.Time.Compare)
	calls, busiest := 0, 0
	var late []float64
	step := time.Minute / time.Duration(o.Pace*o.Campaigns)
	for i, t := range at {
		if t.Sub(at[0]) >= o.Length {
			break
		}
		calls++
		within, _ := slices.BinarySearchFunc(at, t.Add(time.Second), time.Time.Compare)
		busiest = max(busiest, within-i)
		late = append(late, float64(t.Sub(at[0].Add(time.Duration(i)*step)))/float64(time.Millisecond))
	}
	ratio := 100 * float64(calls) / o.due()
	f.Add(result.Figure("pace", "calls placed, of those due at the set pace", "%", result.Exactly(ratio), result.Least("value", 99),
		result.Most("value", 101)))
	m := result.Figure("calls_per_second", "calls placed per second", "/s", result.Exactly(float64(calls)/o.Length.Seconds()))
	m.More = true
	f.Add(m)
	f.Add(result.Figure("busiest_second", "calls in the busiest second", "", result.Exactly(float64(busiest)),
		result.Most("value", float64(max(2, 2*o.Pace*o.Campaigns/60)))))
	f.Add(result.Figure("first_ms", "first call, after the campaigns were launched", "ms",
		result.Exactly(float64(first)/float64(time.Millisecond))))
	f.Add(result.Spread("behind_ms", "calls: delay relative to an even pace", "ms", late))
	f.Add(result.Figure("cpu_ms", "CPU of service and database per call", "ms",
		result.Exactly(float64(cpu)/float64(time.Millisecond)/float64(max(1, calls)))))
}
