package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/bench/gateway"
	"github.com/parley-voice/parley/bench/passage"
	"github.com/parley-voice/parley/bench/script"
	"github.com/parley-voice/parley/bench/wording"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/siptest"
)

// stagger is between the beginnings of two of the first calls.
const stagger = 137 * time.Millisecond

// dialled has a gateway place the calls, over SIP and RTP.
func (s *stage) dialled(ctx context.Context, plan []script.Call, warm *script.Call) ([]gateway.Result, error) {
	policy, err := gateway.Without(s.Without)
	if err != nil {
		return nil, err
	}
	transport, stop, err := gateway.OpenMedia(ctx, gateway.Loopback(), &s.late)
	if err != nil {
		return nil, err
	}
	defer stop()
	j := gateway.Job{Plant: s.Plant, Logs: s.Logs, AtATime: s.Calls, Stagger: stagger}
	if len(s.Without) > 0 {
		j.Policy = policy
	}
	if warm != nil {
		j.Warm = &gateway.Order{ID: warm.ID, Prompt: wording.Instructions(warm.Words)}
	}
	for _, c := range plan {
		j.Calls = append(j.Calls, gateway.Order{ID: c.ID, Prompt: wording.Instructions(c.Words)})
	}
	if s.Scene != nil {
		j.Agent = s.Scene.Agent
	}
	carrier := &siptest.Carrier{Listen: "127.0.0.1:0", Media: transport, Answer: s.answer}
	if err = carrier.Start(); err != nil {
		return nil, err
	}
	j.Proxy = carrier.Proxy()
	results, err := s.gateway(ctx, j)
	err = errors.Join(err, carrier.Close())
	stop()
	for _, c := range s.calls {
		err = errors.Join(err, c.net.Close())
	}
	return results, err
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
	take := siptest.Script{Status: http.StatusOK, Talk: func(ctx context.Context, leg media.Leg) {
		if c == nil {
			return
		}
		s.perform(ctx, leg, c)
	}}
	if s.Scene == nil || c == nil {
		return take
	}
	take.Codecs, take.Ptime = s.Scene.Codecs(), s.Scene.Ptime
	if !s.Scene.Straight() {
		c.net = &passage.Network{}
		take.Through = func(ours, theirs netip.AddrPort) (netip.AddrPort, netip.AddrPort, error) {
			return c.net.Between(ours, theirs, s.Scene, s.Seed+uint64(slices.Index(s.order, c.ID))<<8) //nolint:gosec // one of them
		}
	}
	return take
}

// colleague is what a colleague says; the first word may be over before the two
// legs are joined.
const colleague = "hello a colleague speaking"

// gateway runs the other processes until the calls are over.
func (o Options) gateway(ctx context.Context, j gateway.Job) ([]gateway.Result, error) {
	addr, end, err := o.fakes(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	j.Fakes = addr
	b, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	measured := o.Child(ctx, "bench", "gateway")
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
