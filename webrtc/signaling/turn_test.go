package signaling_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/webrtc/ice"
	"github.com/parley-voice/parley/webrtc/turnserver"
)

func TestTURNRelay(t *testing.T) {
	s := newFixture(t)
	received := make(chan struct{}, 1)
	s.each = func(f media.Frame, _ time.Time) {
		for _, v := range f {
			if v > 4000 {
				select {
				case received <- struct{}{}:
				default:
				}
				return
			}
		}
	}
	at := s.endpoint.UDP()
	relay, err := turnserver.Open(t.Context(), turnserver.Config{
		Addr: loopback, First: 44000, Last: 44099, Secret: "canary", Gateway: at,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = relay.Close() })
	b := s.browser("call_a")
	servers := ice.Servers{TURN: relay.URLs(), Secret: "canary"}.ForCall("call_a", time.Now().Add(time.Minute))
	endpoint := openWith(t, ice.Config{UDP: loopback, RelayServers: servers})
	t.Cleanup(func() { b.Close(); _ = endpoint.Close() })
	b.Connector = endpoint
	s.connect(b)
	if n := relay.Allocations(); n == 0 {
		t.Error("the relay carried no packets")
	}
	b.Leg.Play(mediatest.Tone(1000))
	s.waitTone(b.Leg)
	select {
	case <-received:
	case <-time.After(10 * time.Second):
		t.Error("no audio from the browser")
	}
}

// TestCredentialExpiry checks that the TURN credentials in each answer expire five minutes after the maximum duration.
func TestCredentialExpiry(t *testing.T) {
	s := newFixture(t)
	s.server.Servers = ice.Servers{TURN: []string{"turn:turn.example:3478?transport=udp"}, Secret: "canary"}
	s.longest = 10 * time.Minute
	b := s.browser("call_a")
	began := time.Now()
	s.connect(b)
	if err := b.Restart(s.ctx()); err != nil {
		t.Fatal(err)
	}
	s.reload(b)
	answers := 0
	for _, m := range b.Messages() {
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
			t.Errorf("answer %d: credentials last %v", answers, lasts)
		}
	}
	if answers != 3 {
		t.Errorf("%d answers", answers)
	}
}
