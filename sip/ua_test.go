package sip

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/media/rtp/rtptest"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/sip/leg"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestMain runs more tests at once than there are cores: most of them wait.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "6"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2) //nolint:forbidigo // the main function of the tests
	}
	goleak.VerifyTestMain(m)
}

// An env is a UA and a carrier with a shared clock.
type env struct {
	ua      *UA
	carrier *siptest.Carrier
	media   *rtp.Transport
	ports   *rtp.Ports
}

func newEnv(t *testing.T, answer func(siptest.Invite) siptest.Script) *env {
	t.Helper()
	return newEnvWith(t, &UA{}, answer)
}

func newEnvWith(t *testing.T, ua *UA, answer func(siptest.Invite) siptest.Script) *env {
	t.Helper()
	transport, ports := rtptest.New(t, "127.0.0.1")
	l := &env{ua, &siptest.Carrier{Listen: "127.0.0.1:0", Media: transport, Answer: answer}, transport, ports}
	if err := l.carrier.Start(); err != nil {
		t.Fatal(err)
	}
	l.ua.Listen, l.ua.Media = "127.0.0.1:0", transport
	if err := l.ua.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		if err := l.ua.Close(end); err != nil {
			t.Errorf("close the UA: %v", err)
		}
		if connected, dialing := l.ua.Calls(); connected != 0 || dialing != 0 {
			t.Errorf("%d connected and %d dialing after Close", connected, dialing)
		}
		if err := l.carrier.Close(); err != nil {
			t.Errorf("close the carrier: %v", err)
		}
	})
	return l
}

var attempts struct { // all tests share the clock
	sync.Mutex
	n int
}

func (l *env) target() media.Target {
	attempts.Lock()
	defer attempts.Unlock()
	attempts.n++
	return media.Target{
		ID: fmt.Sprintf("att-%d", attempts.n), To: "12025550123", From: "+12025550100",
		Trunk: media.Trunk{Proxy: l.carrier.Proxy()},
	}
}

func shortContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// call dials a target that answers.
func (l *env) call(t *testing.T, target media.Target) *leg.Leg {
	t.Helper()
	call, failure := l.ua.dial(shortContext(t), target, nil)
	if failure != nil {
		t.Fatal(failure)
	}
	return call
}

func (l *env) waitEntry(t *testing.T, wanted func(siptest.Entry) bool) siptest.Entry {
	t.Helper()
	var e siptest.Entry
	err := l.carrier.Wait(shortContext(t), func(all []siptest.Entry) bool {
		if len(all) == 0 {
			return false
		}
		e = all[len(all)-1]
		return wanted(e)
	})
	if err != nil {
		t.Fatalf("carrier saw %+v: %v", e, err)
	}
	return e
}

// waitFor polls until done returns true. state describes a failure.
func waitFor(t *testing.T, done func() bool, state func() string) {
	t.Helper()
	for limit := shortContext(t); !done(); {
		select {
		case <-limit.Done():
			t.Fatal(state())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// inParallel calls f with each number from 0 to n-1, atOnce of them at a time.
func inParallel(n, atOnce int, f func(n int)) {
	work := make(chan int)
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for i := range work {
				f(i)
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	wg.Wait()
}

// checkTone checks that hz dominates windows of n frames. On a busy machine the other side may begin late.
func checkTone(t *testing.T, leg media.Leg, n int, hz float64) {
	t.Helper()
	var got float64
	var err error
	for limit := shortContext(t); got < 0.9 && err == nil && limit.Err() == nil; {
		got, err = toneLevel(leg, n, hz)
	}
	if err != nil || got < 0.9 {
		t.Errorf("level of %v Hz is %.2f, %v", hz, got, err)
	}
}

// toneLevel returns the best level of hz over windows of n frames. A busy machine may
// skip a frame, which breaks the tone of a window.
func toneLevel(leg media.Leg, n int, hz float64) (best float64, err error) {
	for try := 0; try < 5 && best < 0.95 && err == nil; try++ {
		var p float64
		p, err = toneLevelOnce(leg, n, hz)
		best = max(best, p)
	}
	return best, err
}

// toneLevelOnce reads n frames and returns the level of hz in the last half.
func toneLevelOnce(leg media.Leg, n int, hz float64) (float64, error) {
	f, all := make(media.Frame, media.FrameLen(leg.Rate())), []int16(nil)
	for i := range n {
		if err := leg.ReadFrame(f); err != nil {
			return 0, err
		}
		if i >= n/2 {
			all = append(all, f...)
		}
	}
	return tone.Share(all, leg.Rate(), hz), nil
}

func drain(leg media.Leg) error {
	f := make(media.Frame, media.FrameLen(leg.Rate()))
	for {
		if err := leg.ReadFrame(f); err != nil {
			return err
		}
	}
}

func TestDial(t *testing.T) {
	levels := make(chan float64, 1)
	l := newEnv(t, func(siptest.Invite) siptest.Script {
		return siptest.Script{Ring: 20 * time.Millisecond, After: 20 * time.Millisecond, Status: 200, Talk: func(_ context.Context, leg media.Leg) {
			leg.Play(mediatest.Tone(440))
			p, err := toneLevel(leg, 40, 1000)
			if err != nil {
				t.Error(err)
			}
			levels <- p
			_ = drain(leg)
		}}
	})
	target := l.target()
	target.Headers = map[string]string{"X-Campaign": "spring"}
	var progress []media.Progress
	leg, err := l.ua.Dial(t.Context(), target, func(p media.Progress) { progress = append(progress, p) })
	if err != nil {
		t.Fatal(err)
	}
	if len(progress) != 2 || progress[0] != media.Sent || progress[1] != media.Ringing {
		t.Errorf("progress %v", progress)
	}
	if c := leg.Cause(); c != "" {
		t.Errorf("a live leg has the cause %q", c)
	}
	leg.Play(mediatest.Tone(1000))
	checkTone(t, leg, 40, 440)
	if _, ok := leg.(media.Arrival).Arrived(); !ok {
		t.Error("the frame did not arrive")
	}
	if p := <-levels; p < 0.95 {
		t.Errorf("the carrier's level of 1000 Hz is %.2f", p)
	}
	checkContract(t, leg)
	e := l.waitEntry(t, func(e siptest.Entry) bool { return e.Cause != "" })
	if e.ID != target.ID || e.To != target.To || e.From != target.From || e.Headers["X-Campaign"] != "spring" ||
		!e.Rang || !e.Answered || !e.Acked || e.Cause != media.RemoteHangup {
		t.Errorf("the carrier saw %+v", e)
	}
}

// checkContract hangs up a leg and checks the contract of media.Leg.
func checkContract(t *testing.T, leg media.Leg) {
	t.Helper()
	read := make(chan error, 1)
	go func() { read <- drain(leg) }()
	if err := leg.Hangup(media.LocalHangup); err != nil {
		t.Errorf("hangup: %v", err)
	}
	if err := leg.Hangup(media.Failure); err != nil {
		t.Errorf("second hangup: %v", err)
	}
	if c := leg.Cause(); c != media.LocalHangup {
		t.Errorf("cause %q", c)
	}
	if err := <-read; !errors.Is(err, io.EOF) {
		t.Errorf("the reader got %v", err)
	}
	if err := leg.ReadFrame(make(media.Frame, 160)); !errors.Is(err, io.EOF) {
		t.Errorf("a read after the end got %v", err)
	}
	if _, open := <-leg.Digits(); open {
		t.Error("digits are open after the end")
	}
	leg.Play(mediatest.Tone(1))
}

func TestRemoteHangup(t *testing.T) {
	l := newEnv(t, func(siptest.Invite) siptest.Script {
		return siptest.Script{Status: 200, Talk: func(context.Context, media.Leg) {}}
	})
	leg := l.call(t, l.target())
	if err := drain(leg); !errors.Is(err, io.EOF) {
		t.Errorf("the reader got %v", err)
	}
	if c := leg.Cause(); c != media.RemoteHangup {
		t.Errorf("cause %q", c)
	}
	l.waitEntry(t, func(e siptest.Entry) bool { return e.Cause == media.LocalHangup })
}

// TestEarlyMedia checks that Dial returns with the answer, not with early media.
func TestEarlyMedia(t *testing.T) {
	l := newEnv(t, func(siptest.Invite) siptest.Script {
		return siptest.Script{EarlyMedia: true, After: 100 * time.Millisecond, Status: 200, Talk: func(_ context.Context, leg media.Leg) {
			leg.Play(mediatest.Tone(440))
			_ = drain(leg)
		}}
	})
	start := time.Now()
	leg := l.call(t, l.target())
	if d := time.Since(start); d < 100*time.Millisecond {
		t.Errorf("dial returned after %v", d)
	}
	checkTone(t, leg, 40, 440)
	_ = leg.Hangup(media.LocalHangup)
}

// TestClose checks that Close hangs up connected calls, cancels ringing ones, and lets no new call
// begin.
func TestClose(t *testing.T) {
	ringing := make(chan struct{})
	l := newEnv(t, func(in siptest.Invite) siptest.Script {
		if in.To == "1" {
			return siptest.Script{}
		}
		return siptest.Script{Status: 200}
	})
	leg := l.call(t, l.target())
	dialed := make(chan error, 1)
	go func() {
		target := l.target()
		target.To = "1"
		_, err := l.ua.Dial(t.Context(), target, func(p media.Progress) {
			if p == media.Ringing {
				close(ringing)
			}
		})
		dialed <- err
	}()
	<-ringing
	if connected, dialing := l.ua.Calls(); connected != 1 || dialing != 1 {
		t.Errorf("%d connected, %d dialing", connected, dialing)
	}
	for range 2 {
		if err := l.ua.Close(shortContext(t)); err != nil {
			t.Error(err)
		}
	}
	var failure *media.DialError
	if err := <-dialed; !errors.As(err, &failure) || failure.Cause != media.Canceled {
		t.Errorf("the call that rang: %v", err)
	}
	if c := leg.Cause(); c != media.LocalHangup {
		t.Errorf("the call that was up: %q", c)
	}
	if _, err := l.ua.Dial(t.Context(), l.target(), nil); !errors.As(err, &failure) || failure.Cause != media.Canceled {
		t.Errorf("a call after Close: %v", err)
	}
	for _, e := range l.carrier.Journal() {
		if e.Cause != media.Canceled && e.Cause != media.RemoteHangup {
			t.Errorf("the carrier saw %+v", e)
		}
	}
}

// TestRetransmittedAnswer checks that every retransmission of a 2xx is acknowledged.
func TestRetransmittedAnswer(t *testing.T) {
	l := newEnv(t, nil)
	s := newOutsidePeer(t, l)
	target := l.target()
	target.Trunk.Proxy = "sip:" + s.conn.LocalAddr().String() + ";transport=udp"
	acks := make(chan int, 1)
	go func() {
		buf, n := make([]byte, 65536), 0
		defer func() { acks <- n }()
		for n < 3 {
			_ = s.conn.SetReadDeadline(time.Now().Add(5 * time.Second))
			size, from, err := s.conn.ReadFrom(buf)
			if err != nil {
				return
			}
			text := string(buf[:size])
			switch {
			case strings.HasPrefix(text, "INVITE "):
				reply := []byte(answerTo(text, s.conn.LocalAddr().String()))
				for range 3 {
					_, _ = s.conn.WriteTo(reply, from)
				}
			case strings.HasPrefix(text, "ACK "):
				n++
			}
		}
	}()
	leg := l.call(t, target)
	if n := <-acks; n != 3 {
		t.Errorf("%d ACKs for 3 answers", n)
	}
	key := leg.DialogKey()
	bye := s.request("BYE", map[string]string{
		"Call-ID": key.CallID, "To": "<sip:parley@127.0.0.1>;tag=" + key.Local, "From": "<sip:a@b>;tag=" + key.Remote,
	})
	if got := s.send(bye); !strings.HasPrefix(got, "SIP/2.0 200") {
		t.Errorf("BYE was answered with %.40q", got)
	}
}

// answerTo returns a 200 with a contact, "host:port".
func answerTo(invite, contact string) string {
	return strings.Replace(reply(invite, "200 OK", peerTag, "", sdpWithPort(9)), "peer@"+peerAddr, "callee@"+contact, 1)
}
