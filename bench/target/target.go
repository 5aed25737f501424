// Package target measures another voice system. It calls the system over SIP, or answers calls that it orders from the
// system. It speaks lines, and derives response times and faults from the received audio alone.
package target

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/parley-voice/parley/bench/callee"
	"github.com/parley-voice/parley/bench/gateway"
	"github.com/parley-voice/parley/bench/machine"
	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/sip"
)

const rate = 8000 // sample rate in Hz

// Options configure Run.
type Options struct {
	// Target is "sip:user@host:port;transport=udp"; port and transport are
	// optional.
	Target string
	// Order is a shell command that makes the system dial, and Listen the SIP address, "192.0.2.1:5090", that it must
	// dial. They replace Target. The command runs once for each call.
	Order, Listen string
	From          string // caller number to show
	Calls         int    // concurrent calls
	Lines         int    // lines per call
	Speech        Speech
	// First lets the caller speak first. Otherwise the caller waits up to 6 s for a greeting.
	First bool
	// Into is how long after the start of an answer every second line interrupts it; 0 disables interruptions.
	Into time.Duration
	// Progress is called after every line; nil disables it.
	Progress func(done, all int)
}

// address is a parsed target.
type address struct{ user, proxy, host string }

func parse(text string) (address, error) {
	wrong := fmt.Errorf("target %q: accepted are sip:user@host, sip:user@host:port, and ;transport=udp|tcp", text)
	rest, ok := strings.CutPrefix(text, "sip:")
	user, at, named := strings.Cut(rest, "@")
	if !ok || !named || user == "" || at == "" {
		return address{}, wrong
	}
	host, _, _ := strings.Cut(at, ";")
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if host == "" {
		return address{}, wrong
	}
	return address{user, "sip:" + at, host}, nil
}

// local returns the local address from which the target is reachable.
func (a address) local(ctx context.Context) (netip.Addr, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "udp", net.JoinHostPort(a.host, "5060")) // connecting a UDP socket sends nothing
	if err != nil {
		return netip.Addr{}, fmt.Errorf("target: %w", err)
	}
	defer func() { _ = conn.Close() }()
	at, err := netip.ParseAddrPort(conn.LocalAddr().String())
	return at.Addr().Unmap(), err
}

// Run places the calls, analyzes them and adds the metrics to f.
func Run(ctx context.Context, o Options, f *result.File) error {
	calls, late, err := hold(ctx, o)
	if err != nil {
		return err
	}
	report(o, calls, late, f)
	return nil
}

// hold places and records all calls. It also returns the lateness of each clock tick in ms.
func hold(ctx context.Context, o Options) (calls []call, late []float64, err error) {
	if o.Calls < 1 || o.Lines < 1 {
		return nil, nil, fmt.Errorf("%d calls, %d utterances per call: must be at least 1", o.Calls, o.Lines)
	}
	var to address
	var at netip.AddrPort
	ip := netip.Addr{}
	if o.Order != "" {
		at, err = listenAddress(o.Listen)
		ip = at.Addr()
	} else if to, err = parse(o.Target); err == nil {
		ip, err = to.local(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	var ticks machine.Lateness
	transport, stop, err := gateway.OpenMedia(ctx, ip, &ticks)
	if err != nil {
		return nil, nil, err
	}
	stop = sync.OnceFunc(stop)
	defer stop()
	s := &session{Options: o, to: to}
	if o.Order != "" {
		calls, err = s.holdOrdered(ctx, at, transport)
	} else {
		calls, err = s.holdDialed(ctx, ip, transport)
	}
	if err != nil {
		return nil, nil, err
	}
	stop() // stops the clock
	return calls, ticks.Late(), nil
}

// A session is the state of a run.
type session struct {
	Options
	to address
	ua *sip.UA

	mu   sync.Mutex
	done int
}

// holdDialed dials all calls at once, from ip. It returns the errors of all failed calls.
func (s *session) holdDialed(ctx context.Context, ip netip.Addr, transport *rtp.Transport) (calls []call, err error) {
	s.ua = &sip.UA{Listen: netip.AddrPortFrom(ip, 0).String(), Media: transport}
	if err = s.ua.Start(); err != nil {
		return nil, err
	}
	defer func() {
		closing, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer done()
		err = errors.Join(err, s.ua.Close(closing))
	}()
	return s.together(func(n int) (call, error) { return s.dial(ctx, n) })
}

// together holds all calls at once. It returns the errors of all failed calls.
func (s *session) together(hold func(n int) (call, error)) ([]call, error) {
	calls, errs := make([]call, s.Calls), make([]error, s.Calls)
	var lines sync.WaitGroup
	for i := range calls {
		lines.Go(func() { calls[i], errs[i] = hold(i) })
	}
	lines.Wait()
	return calls, errors.Join(errs...)
}

// prepare returns call n with its lines, and what the caller does.
func (s *session) prepare(ctx context.Context, n int) (c call, script callee.Script, err error) {
	c.id = fmt.Sprintf("target-%d", n)
	if c.lines, err = s.Speech.lines(ctx, n, s.Lines); err != nil {
		return c, script, err
	}
	script = callee.Script{First: s.First, Said: s.said}
	for i, l := range c.lines {
		line := callee.Line{PCM: l.pcm}
		if s.Into > 0 && i%2 == 1 {
			line.Into = s.Into
		}
		script.Lines = append(script.Lines, line)
	}
	return c, script, nil
}

// dial dials and holds call n.
func (s *session) dial(ctx context.Context, n int) (call, error) {
	c, script, err := s.prepare(ctx, n)
	if err != nil {
		return c, err
	}
	leg, err := s.ua.Dial(ctx, media.Target{
		ID: fmt.Sprintf("bench-%d-%d", time.Now().UnixNano(), n), To: s.to.user, From: s.From,
		Trunk: media.Trunk{Proxy: s.to.proxy, Codecs: []string{"PCMU", "PCMA"}},
	}, nil)
	if err != nil {
		return c, fmt.Errorf("call %d: %w", n, err)
	}
	c.record = callee.Perform(ctx, leg, script)
	c.cause = leg.Cause()
	_ = leg.Hangup(media.LocalHangup)
	return c, nil
}

// said counts a line.
func (s *session) said() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done++; s.Progress != nil {
		s.Progress(s.done, s.Calls*s.Lines)
	}
}
