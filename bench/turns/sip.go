package turns

import (
	"cmp"
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
	"github.com/parley-voice/parley/bench/providers"
	"github.com/parley-voice/parley/bench/scenario"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/siptest"
)

// stagger is the time between the starts of the first calls.
const stagger = 137 * time.Millisecond

// overSIP runs the calls over SIP and RTP. A gateway places them.
func (s *session) overSIP(ctx context.Context, plan []scenario.Call, warm *scenario.Call) ([]gateway.Result, error) {
	policy, err := gateway.PolicyWithout(s.Without)
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
		j.Warm = &gateway.Call{ID: warm.ID, Prompt: providers.Prompt(warm.Words)}
	}
	for _, c := range plan {
		j.Calls = append(j.Calls, gateway.Call{ID: c.ID, Prompt: providers.Prompt(c.Words)})
	}
	if s.Scenario != nil {
		j.Agent = s.Scenario.Agent
	}
	j.Agent.Patience = cmp.Or(s.Patience, j.Agent.Patience)
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

// answer answers a call with a callee, or with the transfer target.
func (s *session) answer(in siptest.Invite) siptest.Script {
	if in.To == gateway.Colleague {
		return siptest.Script{Status: http.StatusOK, Talk: siptest.Person{Greeting: colleague, GiveUpAfter: time.Second}.Talk}
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
	if s.Scenario == nil || c == nil {
		return take
	}
	take.Codecs, take.Ptime = s.Scenario.Codecs(), s.Scenario.Ptime
	if !s.Scenario.Straight() {
		c.net = &Network{}
		take.MediaRelay = func(ours, theirs netip.AddrPort) (netip.AddrPort, netip.AddrPort, error) {
			return c.net.Between(ours, theirs, s.Scenario, s.Seed+uint64(slices.Index(s.order, c.ID))<<8) //nolint:gosec // one of them
		}
	}
	return take
}

// colleague is the first line of the transfer target. Its first word may be lost, because it can
// come before the calls are connected.
const colleague = "hello a colleague speaking"

// gateway starts the gateway and the fake providers, and returns the results when all calls have ended.
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
