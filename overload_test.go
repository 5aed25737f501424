package main

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestServersShareByRoom requests 40 calls of two servers on one database, one of which may run 20 calls and the other
// 60. Both must take calls, and each phone must ring once.
func TestServersShareByRoom(t *testing.T) {
	t.Parallel()
	var invites inviteCounter
	over := make(chan struct{})
	proxy := carrier(t, &siptest.Carrier{Answer: func(i siptest.Invite) siptest.Script {
		invites.refuse(i)
		return siptest.Script{Status: 200, Talk: func(context.Context, media.Leg) { <-over }}
	}}).Addr().String()
	url := media.Secret(dbtest.URL(t))
	var servers []*server
	sizes := []int{20, 60}
	for _, most := range sizes {
		c := testConfig(t)
		c.DatabaseURL, c.MaxCalls, c.RateLimit = url, most, 0
		servers = append(servers, runServer(t, c, slog.New(slog.DiscardHandler)))
	}
	t.Cleanup(func() { close(over) })
	key, err := createDemo(t.Context(), servers[0].db, fmt.Sprintf(demo.File, "127.0.0.1:9", demo.Secret, proxy))
	if err != nil {
		t.Fatal(err)
	}
	applySpec(t, servers[0].db, `organizations:
- name: demo
  trunks:
  - name: demo
    subgroups: [{name: default, allowed_destinations: ["1"], agents: [demo], concurrent_calls: 100, calls_per_minute: 6000}]
`)
	for n := range 40 {
		requestCall(t, &demo.Client{URL: servers[n%2].publicURL, Key: key}, fmt.Sprintf("+1202555%04d", n))
	}
	eventually(t, "all calls are active", func() bool { return servers[0].live.Talking()+servers[1].live.Talking() == 40 })
	small, large := servers[0].node.Room(), servers[1].node.Room()
	t.Logf("servers for %v calls run %d and %d", sizes, small.Running, large.Running)
	if small.Running == 0 || large.Running < 10 { // TestNodesShareByRoom checks the shares
		t.Errorf("servers for %v calls run %d and %d", sizes, small.Running, large.Running)
	}
	for number, times := range invites.numbers() {
		if times != 1 {
			t.Errorf("%s was called %d times", number, times)
		}
	}
	if large.Running+large.Free != 60 || large.Hold != "" {
		t.Errorf("the large server has room %+v", large)
	}
	servers[0].drain()
	if r := servers[0].node.Room(); r.Free != 0 || r.Hold != control.HoldStopping {
		t.Errorf("the draining server has room %+v", r)
	}
}
