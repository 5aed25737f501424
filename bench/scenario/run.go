// Package scenario has callees talk with a gateway in another process, which
// asks providers in a third, and measures the conversation at the callees' end:
// how long answers take, whether callers who merely pause are cut off, and what
// becomes of interruptions.
package scenario

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-voice/parley/bench/callee"
	"github.com/parley-voice/parley/bench/gateway"
	"github.com/parley-voice/parley/bench/machine"
	"github.com/parley-voice/parley/bench/passage"
	"github.com/parley-voice/parley/bench/providers"
	"github.com/parley-voice/parley/bench/scene"
	"github.com/parley-voice/parley/bench/wording"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/siptest"
)

// Options say what is measured.
type Options struct {
	Calls  int // at a time
	Pauses int // at least; the other scenarios are in proportion
	Others int // exchanges of each other scenario; 0 is a twelfth of Pauses
	Seed   uint64
	// Without switches parts of the turn machine off: "speculation", "merging".
	Without []string
	// Child starts one of the other processes: "gateway" or "fakes".
	Child    func(ctx context.Context, name string) *exec.Cmd
	Progress func(done, all int) // of lines that callees said; nil for none

	// Plant is a fault that the gateway is to have.
	Plant gateway.Plant

	Logs string // folder for the gateway's turn logs; empty for none
	Only []Name // scenarios; none for all
	// Scene is played instead of the standard scenarios.
	Scene *scene.Scene
}

// A played call is a call as both ends, and the network between them, have it.
type played struct {
	call
	callee callee.Record
	server gateway.Result
	net    *passage.Network // nil where there is nothing between the ends
}

// Run holds all calls and measures them.
func Run(ctx context.Context, o Options) (*Report, error) {
	policy, err := gateway.Without(o.Without)
	if err != nil {
		return nil, err
	}
	s := &stage{Options: o, calls: map[string]*played{}}
	transport, stop, err := gateway.OpenMedia(ctx, gateway.Loopback(), &s.late)
	if err != nil {
		return nil, err
	}
	defer stop()
	j := gateway.Job{Plant: o.Plant, Logs: o.Logs, AtATime: o.Calls, Stagger: 137 * time.Millisecond}
	if len(o.Without) > 0 {
		j.Policy = policy
	}
	plan, err := o.plan()
	if err != nil {
		return nil, err
	}
	for _, c := range plan {
		s.calls[c.id], s.order = &played{call: c}, append(s.order, c.id)
		s.all += len(c.lines)
		j.Calls = append(j.Calls, gateway.Order{ID: c.id, Prompt: wording.Instructions(c.words)})
	}
	if o.Scene != nil {
		j.Agent = o.Scene.Agent
	}
	carrier := &siptest.Carrier{Listen: "127.0.0.1:0", Media: transport, Answer: s.answer}
	if err = carrier.Start(); err != nil {
		return nil, err
	}
	j.Proxy = carrier.Proxy()
	results, err := o.gateway(ctx, j)
	err = errors.Join(err, carrier.Close())
	stop()
	for _, c := range s.calls {
		err = errors.Join(err, c.net.Close())
	}
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

// A stage is a run while it goes on.
type stage struct {
	Options
	order []string
	all   int
	late  machine.Lateness

	mu    sync.Mutex
	done  int
	calls map[string]*played
}

// answer has a callee take the call, or a colleague whom callees are handed
// over to.
func (s *stage) answer(in siptest.Invite) siptest.Script {
	if in.To == gateway.Colleague {
		return siptest.Script{Status: http.StatusOK, Talk: siptest.Person{Hello: colleague, Patience: time.Second}.Talk}
	}
	s.mu.Lock()
	c := s.calls[in.ID]
	s.mu.Unlock()
	script := siptest.Script{Status: http.StatusOK, Talk: func(ctx context.Context, leg media.Leg) {
		if c == nil {
			return
		}
		r := callee.Perform(ctx, leg, callee.Script{
			Lines: c.lines, Echo: c.echo, Noise: c.noise, First: s.Scene != nil && s.Scene.First, Said: s.said,
		})
		s.mu.Lock()
		defer s.mu.Unlock()
		c.callee = r
	}}
	if s.Scene == nil || c == nil {
		return script
	}
	script.Codecs, script.Ptime = []string{s.Scene.Codec}, s.Scene.Ptime
	if !s.Scene.Straight() {
		c.net = &passage.Network{}
		script.Through = func(ours, theirs netip.AddrPort) (netip.AddrPort, netip.AddrPort, error) {
			return c.net.Between(ours, theirs, s.Scene, s.Seed+uint64(slices.Index(s.order, c.id))<<8) //nolint:gosec // one of them
		}
	}
	return script
}

// colleague is what a colleague says; the first word may be over before the two
// legs are joined.
const colleague = "hello a colleague speaking"

// said counts a line.
func (s *stage) said() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done++; s.Progress != nil {
		s.Progress(s.done, s.all)
	}
}

// providers is their script.
func (o Options) providers() providers.Script {
	if o.Scene != nil {
		return o.Scene.Providers
	}
	return providers.Typical()
}

// gateway runs the other processes until the calls are over.
func (o Options) gateway(ctx context.Context, j gateway.Job) ([]gateway.Result, error) {
	fakes := o.Child(ctx, "fakes")
	hold, err := fakes.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := fakes.StdoutPipe()
	if err != nil {
		return nil, err
	}
	fakes.Stderr = os.Stderr
	if err = fakes.Start(); err != nil {
		return nil, err
	}
	defer func() {
		_ = hold.Close()
		_ = fakes.Wait() // its last words are on stderr
	}()
	if err = json.NewEncoder(hold).Encode(o.providers()); err != nil {
		return nil, fmt.Errorf("providers: %w", err)
	}
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("providers: %w", err)
	}
	j.Fakes = strings.TrimSpace(addr)
	b, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	measured := o.Child(ctx, "gateway")
	measured.Stdin, measured.Stderr = strings.NewReader(string(b)), os.Stderr
	said, err := measured.Output()
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	var results []gateway.Result
	for line := range strings.Lines(string(said)) {
		var r gateway.Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return nil, fmt.Errorf("gateway: %w", err)
		}
		results = append(results, r)
	}
	return results, nil
}
