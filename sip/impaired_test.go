package sip

import (
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/relay"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestBadNetwork places 200 calls through networks that duplicate every datagram,
// or drop every fifth: each rings once, and all end.
func TestBadNetwork(t *testing.T) {
	for name, path := range map[string]relay.Path{
		"every datagram twice": {Duplicate: 1},
		"a fifth is lost":      {Loss: 0.2, Delay: 2 * time.Millisecond, Jitter: 5 * time.Millisecond, Duplicate: 0.1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const calls, atOnce = 200, 50
			l := newEnv(t, nil)
			r := &relay.Relay{Target: l.carrier.Addr(), There: path, Back: path, Seed: 7}
			if err := r.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			})
			inParallel(calls, atOnce, func(int) {
				target := l.target()
				target.Trunk.Proxy = "sip:" + r.Addr().String() + ";transport=udp"
				call, err := l.ua.Dial(t.Context(), target, nil)
				if err != nil {
					t.Errorf("%s: %v", target.ID, err)
					return
				}
				_ = call.Hangup(media.LocalHangup)
			})
			if err := l.carrier.Wait(shortContext(t), func(all []siptest.Entry) bool {
				ended := 0
				for _, e := range all {
					if e.Cause != "" {
						ended++
					}
				}
				return ended == calls && len(all) == calls
			}); err != nil {
				t.Errorf("%d INVITEs, %d calls up: %v", len(l.carrier.Journal()), l.carrier.Calls(), err)
			}
			seen := map[string]int{}
			for _, e := range l.carrier.Journal() {
				if seen[e.ID]++; seen[e.ID] > 1 {
					t.Errorf("%s rang %d times", e.ID, seen[e.ID])
				}
			}
		})
	}
}
