// Package target measures a system that is not Parley: it dials it over SIP,
// speaks lines, and tells from the received audio alone how long answers take and
// what is wrong with them. Nothing is asked of the system but to take the call.
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
	"github.com/parley-voice/parley/sip"
)

const rate = 8000 // Hz

// Options say what is measured.
type Options struct {
	// Target is "sip:user@host:port;transport=udp"; port and transport may be
	// left out.
	Target string
	From   string // caller number that is shown
	Calls  int    // at a time
	Lines  int    // of each call
	Speech Speech
	// First has the caller speak first; else it waits to be greeted, for 6 s at
	// most.
	First bool
	// Into has every second line said into the answer to the one before, once
	// that was heard for so long; 0 has none.
	Into time.Duration
	// Progress is told of every line that is over; nil for none.
	Progress func(done, all int)
}

// address is a target taken apart.
type address struct{ user, proxy, host string }

// parse takes a target apart.
func parse(text string) (address, error) {
	wrong := fmt.Errorf("target %q: want sip:user@host, and then :port or ;transport=udp|tcp where they are others than the usual", text)
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

// local is the address of this machine from which the target is reached.
func (a address) local(ctx context.Context) (netip.Addr, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "udp", net.JoinHostPort(a.host, "5060")) // sends nothing
	if err != nil {
		return netip.Addr{}, fmt.Errorf("target: %w", err)
	}
	defer func() { _ = conn.Close() }()
	at, err := netip.ParseAddrPort(conn.LocalAddr().String())
	return at.Addr().Unmap(), err
}

// Run holds the calls, judges them, and puts what came of it into f.
func Run(ctx context.Context, o Options, f *result.File) error {
	calls, late, err := hold(ctx, o)
	if err != nil {
		return err
	}
	report(o, calls, late, f)
	return nil
}

// hold holds all calls. It tells how late each tick of their clock was, in ms,
// too.
func hold(ctx context.Context, o Options) (calls []call, late []float64, err error) {
	to, err := parse(o.Target)
	if err != nil {
		return nil, nil, err
	}
	if o.Calls < 1 || o.Lines < 1 {
		return nil, nil, fmt.Errorf("%d calls, %d lines: want 1 or more of each", o.Calls, o.Lines)
	}
	ip, err := to.local(ctx)
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
	ua := &sip.UA{Listen: netip.AddrPortFrom(ip, 0).String(), Media: transport}
	if err = ua.Start(); err != nil {
		return nil, nil, err
	}
	s := &stage{Options: o, to: to, ua: ua}
	calls, err = s.hold(ctx)
	closing, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	if err = errors.Join(err, ua.Close(closing)); err != nil {
		return nil, nil, err
	}
	stop() // the clock ends
	return calls, ticks.Late(), nil
}

// A stage is a run while it goes on.
type stage struct {
	Options
	to address
	ua *sip.UA

	mu   sync.Mutex
	done int
}

// hold holds all calls at once. It fails with the first that could not be held.
func (s *stage) hold(ctx context.Context) ([]call, error) {
	calls, errs := make([]call, s.Calls), make([]error, s.Calls)
	var lines sync.WaitGroup
	for i := range calls {
		lines.Go(func() { calls[i], errs[i] = s.one(ctx, i) })
	}
	lines.Wait()
	return calls, errors.Join(errs...)
}

// one holds one call.
func (s *stage) one(ctx context.Context, n int) (call, error) {
	c := call{id: fmt.Sprintf("target-%d", n)}
	var err error
	if c.lines, err = s.Speech.lines(ctx, n, s.Lines); err != nil {
		return c, err
	}
	script := callee.Script{First: s.First, Said: s.said}
	for i, l := range c.lines {
		line := callee.Line{PCM: l.pcm}
		if s.Into > 0 && i%2 == 1 {
			line.Into = s.Into
		}
		script.Lines = append(script.Lines, line)
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
func (s *stage) said() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done++; s.Progress != nil {
		s.Progress(s.done, s.Calls*s.Lines)
	}
}
