// Package turns measures conversations at the callees' end: response time, cut-offs of callers
// who pause, and interruptions. The callees talk with a gateway in another process, and the fake
// providers run in a third. Web callers talk with a full server instead of a gateway.
package turns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/parley-voice/parley/bench/callee"
	"github.com/parley-voice/parley/bench/gateway"
	"github.com/parley-voice/parley/bench/machine"
	"github.com/parley-voice/parley/bench/providers"
	"github.com/parley-voice/parley/bench/scenario"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// Options configure Run.
type Options struct {
	Calls  int // concurrent calls
	Pauses int // minimum total number of pauses; the other scenarios scale with it
	Others int // exchanges per other scenario; 0 means a twelfth of Pauses
	Seed   uint64
	// Without switches off parts of the turn machine: "speculation", "merging".
	Without []string
	// Patience is that of the agent; empty means balanced.
	Patience pipeline.Patience
	// Child returns a command that runs this program.
	Child    func(ctx context.Context, args ...string) *exec.Cmd
	Progress func(done, all int) // progress in spoken lines; nil disables it

	// Plant is a deliberate fault of the gateway.
	Plant gateway.Plant

	Logs string          // folder for the gateway's turn logs; empty for none
	Only []scenario.Name // scenarios; none means all
	// Peer is the transport of the standard scenarios; empty means SIP.
	Peer scenario.Peer
	// Scenario replaces the standard scenarios, with its own transport.
	Scenario *scenario.Scenario
	// Warm places a warm-up call first, which is not counted. It has no effect on a scenario over SIP.
	Warm bool
	Log  io.Writer // log of the server for web calls; nil discards it
}

// check validates the options.
func (o Options) check() error {
	if o.peer() == scenario.Web && (len(o.Without) > 0 || o.Patience != "" || o.Plant != gateway.Healthy) {
		return errors.New("--without, --patience and --plant are not supported on web calls")
	}
	if o.Patience != "" && !slices.Contains(pipeline.Patiences(), string(o.Patience)) {
		return fmt.Errorf("--patience %q: accepted are %s", o.Patience, strings.Join(pipeline.Patiences(), ", "))
	}
	_, err := gateway.PolicyWithout(o.Without)
	return err
}

func (o Options) peer() scenario.Peer {
	if o.Scenario != nil {
		return o.Scenario.Peer
	}
	return cmp.Or(o.Peer, scenario.SIP)
}

// warms reports whether to place a warm-up call. A scenario with faults has none, because its
// faults count the requests to the providers.
func (o Options) warms() bool {
	return o.Warm && (o.Scenario == nil || o.peer() == scenario.Web && len(o.providers().Faults) == 0)
}

const rate = scenario.Rate

// A call is a planned call with the recordings of both ends and of the network.
type call struct {
	scenario.Call
	callee callee.Record
	server gateway.Result
	net    *Network // nil without an emulated network
}

// Run places all calls and analyzes them.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	plan, err := scenario.PlanOptions{Pauses: o.Pauses, Others: o.Others, Seed: o.Seed, Only: o.Only, Scenario: o.Scenario}.Plan()
	if err != nil {
		return nil, err
	}
	s := &session{Options: o, calls: map[string]*call{}}
	var warm *scenario.Call
	if o.warms() {
		warm = scenario.Warm()
		s.calls[warm.ID] = &call{Call: *warm}
	}
	for _, c := range plan {
		s.calls[c.ID], s.order = &call{Call: c}, append(s.order, c.ID)
		s.all += len(c.Lines)
	}
	hold := s.overSIP
	if o.peer() == scenario.Web {
		hold = s.overWeb
	}
	results, err := hold(ctx, plan, warm)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range results {
		if r.Err != "" {
			return nil, fmt.Errorf("call %s: %s", r.ID, r.Err)
		}
		s.calls[r.ID].server = r
	}
	return s.report()
}

// A session is the state of a run.
type session struct {
	Options
	order []string
	all   int
	late  machine.Lateness

	mu    sync.Mutex
	done  int
	calls map[string]*call
}

// perform plays the callee of a call.
func (s *session) perform(ctx context.Context, leg media.Leg, c *call) {
	said := s.onLine
	if !slices.Contains(s.order, c.ID) {
		said = nil // a warm-up is not counted
	}
	r := callee.Perform(ctx, leg, callee.Script{
		Lines: c.Lines, Echo: c.Echo, Noise: c.Noise, First: s.Scenario != nil && s.Scenario.First, Said: said,
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	c.callee = r
}

// onLine counts a line.
func (s *session) onLine() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done++; s.Progress != nil {
		s.Progress(s.done, s.all)
	}
}

// providers returns the providers' script.
func (o Options) providers() providers.Script {
	if o.Scenario != nil {
		return o.Scenario.Providers
	}
	return providers.Typical()
}

// fakes starts the fake providers in their own process. end stops them.
func (o Options) fakes(ctx context.Context) (addr string, end func(), err error) {
	cmd := o.Child(ctx, "bench", "fakes")
	cmd.Stderr = os.Stderr
	return gateway.StartFakes(cmd, o.providers())
}
