package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-voice/parley/pipeline/fake"
	"github.com/parley-voice/parley/sip/siptest"
)

// TurnOptions say what a turn bench measures.
type TurnOptions struct {
	Calls, Turns int // calls at a time, and turns of each
	// Child starts one of the other processes: "gateway" or "providers".
	Child    func(ctx context.Context, name string) *exec.Cmd
	Progress func(done, all int)
}

// Times are durations, sorted.
type Times []time.Duration

// Quantile returns the p-quantile, 0 of none.
func (t Times) Quantile(p float64) time.Duration {
	if len(t) == 0 {
		return 0
	}
	return t[min(len(t)-1, max(0, int(math.Ceil(p*float64(len(t))))-1))]
}

// A TurnResult is what callers waited for.
type TurnResult struct {
	FirstAudio Times // answer of the call to the first audible packet
	Wire       Times // the caller's last voiced packet to the first audible one
	Overhead   Times // of it, what no provider and no policy asked for
	Off        Times // how far the server's own turn time was off, without sign
}

// patience is how long the turn machine waits for a caller whose words tell
// nothing of whether they are finished; hangover is the voice detector's.
const (
	patience = 400 * time.Millisecond
	hangover = 180 * time.Millisecond
)

// Critical is what a turn takes by script and by policy alone.
func Critical(s fake.Script) time.Duration {
	return max(patience, hangover+s.FinalLag) + s.FirstToken + s.FirstByte
}

// Turns has callers talk with a gateway in another process, which asks
// providers in a third, and measures at the callers' end.
func Turns(ctx context.Context, o TurnOptions) (TurnResult, error) {
	var mu sync.Mutex
	heard := map[string][]siptest.Exchange{}
	done := 0
	lines := make([]string, o.Turns)
	for i := range lines {
		lines[i] = fmt.Sprintf("this is sentence number %d", i+1)
	}
	carrier := &siptest.Carrier{Listen: "127.0.0.1:0", Answer: func(in siptest.Invite) siptest.Script {
		note := func(e siptest.Exchange) {
			mu.Lock()
			defer mu.Unlock()
			heard[in.ID] = append(heard[in.ID], e)
			if done++; o.Progress != nil {
				o.Progress(done, o.Calls*(o.Turns+1))
			}
		}
		return siptest.Script{Status: http.StatusOK, Talk: siptest.Person{Lines: lines, Heard: note}.Talk}
	}}
	if err := carrier.Start(); err != nil {
		return TurnResult{}, err
	}
	defer func() { _ = carrier.Close() }() // loopback only
	results, err := o.gateway(ctx, carrier.Proxy())
	if err != nil {
		return TurnResult{}, err
	}
	mu.Lock()
	defer mu.Unlock()
	return tally(results, heard, Critical(fake.Typical()))
}

// gateway runs the other processes until the calls are over.
func (o TurnOptions) gateway(ctx context.Context, proxy string) ([]result, error) {
	providers := o.Child(ctx, "providers")
	hold, err := providers.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := providers.StdoutPipe()
	if err != nil {
		return nil, err
	}
	providers.Stderr = os.Stderr
	if err = providers.Start(); err != nil {
		return nil, err
	}
	defer func() {
		_ = hold.Close()
		_ = providers.Wait() // its last words are on stderr
	}()
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("providers: %w", err)
	}
	b, err := json.Marshal(job{Proxy: proxy, Fakes: strings.TrimSpace(addr), Calls: o.Calls, Stagger: 137 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	gateway := o.Child(ctx, "gateway")
	gateway.Stdin, gateway.Stderr = strings.NewReader(string(b)), os.Stderr
	said, err := gateway.Output()
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	var results []result
	for line := range strings.Lines(string(said)) {
		var r result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return nil, fmt.Errorf("gateway: %w", err)
		}
		results = append(results, r)
	}
	return results, nil
}

// tally compares what callers heard with what the server says.
func tally(results []result, heard map[string][]siptest.Exchange, critical time.Duration) (TurnResult, error) {
	var t TurnResult
	for _, r := range results {
		if r.Err != "" {
			return t, errors.New(r.Err)
		}
		if len(r.Turns) < len(heard[r.ID]) {
			return t, fmt.Errorf("call %s: %d turns by the server, %d by the caller", r.ID, len(r.Turns), len(heard[r.ID]))
		}
		for _, e := range heard[r.ID] {
			wire := e.Answer.Sub(e.Said)
			if e.Number == 0 {
				t.FirstAudio = append(t.FirstAudio, wire)
				continue
			}
			t.Wire = append(t.Wire, wire)
			t.Overhead = append(t.Overhead, wire-critical)
			t.Off = append(t.Off, (wire - r.Turns[e.Number]).Abs())
		}
	}
	for _, all := range []Times{t.FirstAudio, t.Wire, t.Overhead, t.Off} {
		slices.Sort(all)
	}
	if len(t.Wire) == 0 {
		return t, errors.New("no turn was heard")
	}
	return t, nil
}
