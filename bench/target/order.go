package target

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/parley-voice/parley/bench/callee"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/sip/siptest"
)

// Time limits of an ordered call.
const (
	orderTimeout   = 30 * time.Second // for the command
	arrivalTimeout = 30 * time.Second // from the end of the command to the INVITE
)

// maxOrderOutput is the number of bytes of a failed command's output that the error shows.
const maxOrderOutput = 500

// listenAddress parses Options.Listen.
func listenAddress(text string) (netip.AddrPort, error) {
	at, err := netip.ParseAddrPort(text)
	if err != nil || at.Addr().IsUnspecified() || at.Port() == 0 {
		return at, fmt.Errorf("listen address %q: accepted is an IP address of this machine and a port, like 192.0.2.1:5090", text)
	}
	return at, nil
}

// orders receives the calls of a system that dials by command.
type orders struct {
	*session
	mu    sync.Mutex
	legs  chan arrival
	extra int // number of calls beyond the ordered ones
}

// An arrival is an answered call. The carrier hangs up when done is closed.
type arrival struct {
	leg  media.Leg
	done chan struct{}
}

// holdOrdered orders all calls at once and answers them at the address at.
func (s *session) holdOrdered(ctx context.Context, at netip.AddrPort, transport *rtp.Transport) (calls []call, err error) {
	o := &orders{session: s, legs: make(chan arrival, s.Calls)}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	carrier := &siptest.Carrier{
		Listen: at.String(), Media: transport,
		Answer: func(siptest.Invite) siptest.Script {
			return siptest.Script{
				Trying: -1, Status: 200, Codecs: []string{"PCMU", "PCMA"},
				Talk: func(talking context.Context, leg media.Leg) { o.onCall(ctx, talking, leg) },
			}
		},
	}
	if err = carrier.Start(); err != nil {
		return nil, err
	}
	defer func() {
		cancel()
		err = errors.Join(err, carrier.Close())
	}()
	calls, err = s.together(func(n int) (call, error) { return o.hold(ctx, n) })
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.extra > 0 {
		err = errors.Join(err, fmt.Errorf("%d more calls arrived than were ordered", o.extra))
	}
	return calls, err
}

// onCall passes an answered call on and waits for its end. It returns at once if every ordered call has arrived.
func (o *orders) onCall(ctx, talking context.Context, leg media.Leg) {
	a := arrival{leg, make(chan struct{})}
	select {
	case o.legs <- a:
	default:
		o.mu.Lock()
		o.extra++
		o.mu.Unlock()
		return
	}
	select {
	case <-a.done:
	case <-talking.Done():
	case <-ctx.Done():
	}
}

// hold orders call n and holds the next call that arrives.
func (o *orders) hold(ctx context.Context, n int) (call, error) {
	c, script, err := o.prepare(ctx, n)
	if err != nil {
		return c, err
	}
	if err = o.order(ctx, n); err != nil {
		return c, err
	}
	late := time.NewTimer(arrivalTimeout)
	defer late.Stop()
	select {
	case a := <-o.legs:
		defer close(a.done)
		c.record = callee.Perform(ctx, a.leg, script)
		c.cause = a.leg.Cause()
		return c, nil
	case <-late.C:
		return c, fmt.Errorf("call %d: the order succeeded, but no call arrived at %s within %v", n, o.Listen, arrivalTimeout)
	case <-ctx.Done():
		return c, ctx.Err()
	}
}

// order runs the command that makes the target dial. The variable CALL is the number of the call, from 0.
func (o *orders) order(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, orderTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", o.Order) //nolint:gosec // the user's own command
	cmd.Env = append(os.Environ(), "CALL="+strconv.Itoa(n))
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		out = bytes.TrimSpace(out)
		return fmt.Errorf("call %d: the command of --order failed: %w: %s", n, err, out[max(0, len(out)-maxOrderOutput):])
	}
	return nil
}
