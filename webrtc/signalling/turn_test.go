package signalling_test

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/webrtc/ice"
	"github.com/parley-voice/parley/webrtc/turn"
)

// TestThroughRelay: a browser that may go no other way than through our relay has
// its call, and is heard.
func TestThroughRelay(t *testing.T) {
	s := newStage(t)
	heard := make(chan struct{}, 1)
	s.each = func(f media.Frame, _ time.Time) {
		for _, v := range f {
			if v > 4000 {
				select {
				case heard <- struct{}{}:
				default:
				}
				return
			}
		}
	}
	at := s.endpoint.UDP()
	relay, err := turn.Open(t.Context(), turn.Config{
		Addr: netip.MustParseAddrPort("127.0.0.1:0"), First: 44000, Last: 44099, Secret: "canary", Gateway: at,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = relay.Close() })
	b := s.browser("call_a")
	servers := ice.Servers{TURN: relay.URLs(), Secret: "canary"}.For("call_a", time.Now().Add(time.Minute))
	own, err := ice.Open(t.Context(), ice.Config{UDP: netip.MustParseAddrPort("127.0.0.1:0"), Through: servers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close(); _ = own.Close() })
	b.Connector = own
	if err := b.Join(s.ctx()); err != nil {
		t.Fatal(err)
	}
	if n := relay.Allocations(); n == 0 {
		t.Error("nothing goes through the relay")
	}
	b.Leg.Play(hum())
	s.hums(b.Leg)
	select {
	case <-heard:
	case <-time.After(10 * time.Second):
		t.Error("the browser is not heard")
	}
}

// TestCredentialsEnd: those that a browser is told when it joins, restarts and
// resumes end five minutes after the longest that its call may last.
func TestCredentialsEnd(t *testing.T) {
	s := newStage(t)
	s.server.Servers = ice.Servers{TURN: []string{"turn:turn.example:3478?transport=udp"}, Secret: "canary"}
	s.longest = 10 * time.Minute
	b := s.browser("call_a")
	began := time.Now()
	if err := b.Join(s.ctx()); err != nil {
		t.Fatal(err)
	}
	if err := b.Restart(s.ctx()); err != nil {
		t.Fatal(err)
	}
	if err := b.Reload(s.ctx()); err != nil {
		t.Fatal(err)
	}
	answers := 0
	for _, m := range b.Heard() {
		if m.Type != "answer" {
			continue
		}
		answers++
		if len(m.Servers) != 1 {
			t.Fatalf("%+v", m)
		}
		end, _, _ := strings.Cut(m.Servers[0].Username, ":")
		unix, err := strconv.ParseInt(end, 10, 64)
		if lasts := time.Unix(unix, 0).Sub(began); err != nil || lasts < 15*time.Minute-time.Second || lasts > 15*time.Minute+5*time.Second {
			t.Errorf("answer %d: they last for %v", answers, lasts)
		}
	}
	if answers != 3 {
		t.Errorf("%d answers", answers)
	}
}
