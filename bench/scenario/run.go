// Package scenario has callees talk with a gateway in another process, which
// asks providers in a third, and measures the conversation at the callees' end:
// how long answers take, whether callers who merely pause are cut off, and what
// becomes of interruptions. Visitors talk with a whole server instead.
package scenario

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
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
	"github.com/parley-voice/parley/bench/passage"
	"github.com/parley-voice/parley/bench/providers"
	"github.com/parley-voice/parley/bench/scene"
	"github.com/parley-voice/parley/bench/script"
	"github.com/parley-voice/parley/media"
)

// Options say what is measured.
type Options struct {
	Calls  int // at a time
	Pauses int // at least; the other scenarios are in proportion
	Others int // exchanges of each other scenario; 0 is a twelfth of Pauses
	Seed   uint64
	// Without switches parts of the turn machine off: "speculation", "merging".
	Without []string
	// Child makes a command of this program, for the other processes.
	Child    func(ctx context.Context, args ...string) *exec.Cmd
	Progress func(done, all int) // of lines that callees said; nil for none

	// Plant is a fault that the gateway is to have.
	Plant gateway.Plant

	Logs string        // folder for the gateway's turn logs; empty for none
	Only []script.Name // scenarios; none for all
	// Peer is by what the callers of the standard scenarios talk; empty is SIP.
	Peer scene.Peer
	// Scene is played instead of the standard scenarios, by its own peer.
	Scene *scene.Scene
	// Warm has one call held before all others, which is not counted: of the
	// standard scenarios, and at a server that is visited.
	Warm bool
	Log  io.Writer // of a server that is visited; nil for none
}

// check says what cannot be run.
func (o Options) check() error {
	if o.peer() == scene.Web && (len(o.Without) > 0 || o.Plant != gateway.Healthy) {
		return errors.New("without, plant: a web peer talks with a whole server, of which no part is switched off or broken")
	}
	_, err := gateway.Without(o.Without)
	return err
}

// peer is by what callers talk.
func (o Options) peer() scene.Peer {
	if o.Scene != nil {
		return o.Scene.Peer
	}
	return cmp.Or(o.Peer, scene.SIP)
}

// warms tells whether a call is held first that does not count. Where a scene
// numbers the requests of its providers there is none: it would be the first.
func (o Options) warms() bool {
	return o.Warm && (o.Scene == nil || o.peer() == scene.Web && len(o.providers().Faults) == 0)
}

const rate = script.Rate

// A played call is a call as both ends, and the network between them, have it.
type played struct {
	script.Call
	callee callee.Record
	server gateway.Result
	net    *passage.Network // nil where there is nothing between the ends
}

// Run holds all calls and measures them.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	plan, err := script.Ask{Pauses: o.Pauses, Others: o.Others, Seed: o.Seed, Only: o.Only, Scene: o.Scene}.Plan()
	if err != nil {
		return nil, err
	}
	s := &stage{Options: o, calls: map[string]*played{}}
	var warm *script.Call
	if o.warms() {
		warm = script.Warm()
		s.calls[warm.ID] = &played{Call: *warm}
	}
	for _, c := range plan {
		s.calls[c.ID], s.order = &played{Call: c}, append(s.order, c.ID)
		s.all += len(c.Lines)
	}
	hold := s.dialled
	if o.peer() == scene.Web {
		hold = s.visited
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

// perform has a callee do what its call is for.
func (s *stage) perform(ctx context.Context, leg media.Leg, c *played) {
	said := s.said
	if !slices.Contains(s.order, c.ID) {
		said = nil // it is not counted
	}
	r := callee.Perform(ctx, leg, callee.Script{
		Lines: c.Lines, Echo: c.Echo, Noise: c.Noise, First: s.Scene != nil && s.Scene.First, Said: said,
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	c.callee = r
}

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

// fakes plays the providers in a process of their own, until end.
func (o Options) fakes(ctx context.Context) (addr string, end func(), err error) {
	cmd := o.Child(ctx, "bench", "fakes")
	hold, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	cmd.Stderr = os.Stderr
	if err = cmd.Start(); err != nil {
		return "", nil, err
	}
	end = func() {
		_ = hold.Close()
		_ = cmd.Wait() // its last words are on stderr
	}
	if err = json.NewEncoder(hold).Encode(o.providers()); err == nil {
		addr, err = bufio.NewReader(out).ReadString('\n')
	}
	if err != nil {
		end()
		return "", nil, fmt.Errorf("providers: %w", err)
	}
	return strings.TrimSpace(addr), end, nil
}
