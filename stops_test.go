package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/sip/siptest"
)

// stopper stops campaigns while they dial, and looks for INVITEs that are sent too late.
type stopper struct {
	server *server
	api    *demo.Client

	mu   sync.Mutex
	left map[string]time.Time // time of the last INVITE, by number
	n    int                  // count of used numbers
}

// stopWays are the ways to stop contacts from being called.
func stopWays() []string { return []string{"pause", "cancel", "withdraw", "list"} }

const (
	stopContacts = 20
	stopsWithin  = time.Second
)

func newStopper(t *testing.T) *stopper {
	t.Helper()
	s := &stopper{left: map[string]time.Time{}}
	c := carrier(t, &siptest.Carrier{
		OnInvite: func(i siptest.Invite) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.left["+"+i.To] = i.At
		},
		Answer: func(siptest.Invite) siptest.Script { return siptest.Script{Status: 486} },
	})
	s.server, s.api = startServer(t, c.Addr().String())
	s.server.allowAnyHour(t)
	return s
}

// stop is a campaign that is stopped.
type stop struct {
	verb, id string
	stopped  []string // numbers of the stopped contacts
	answered time.Time
}

func (s *stopper) begin(t *testing.T, verb string) *stop {
	t.Helper()
	x := &stop{verb: verb}
	for range stopContacts {
		x.stopped = append(x.stopped, fmt.Sprintf("+7701%07d", s.n))
		s.n++
	}
	x.id = campaign(t, s.api, map[string]any{"calls_per_minute": 200}, x.stopped...)
	return x
}

// do stops all contacts of the campaign, or some of them.
func (s *stopper) do(t *testing.T, x *stop) {
	t.Helper()
	switch x.verb {
	case "pause", "cancel":
		post(t, s.api, "/v1/campaigns/"+x.id+"/"+x.verb, nil, new(any))
	case "withdraw": // the other contacts are still called
		x.stopped = x.stopped[rand.IntN(4):]
		post(t, s.api, "/v1/contacts/withdraw", map[string]any{"phones": x.stopped}, new(any))
	case "list":
		x.stopped = x.stopped[rand.IntN(4):]
		s.server.applyFile(t, `organizations: [{name: demo, suppression: ["`+strings.Join(x.stopped, `", "`)+`"]}]`)
	}
	x.answered = time.Now()
}

// seen returns the time from the response to the last INVITE for a stopped contact, and the number of earlier INVITEs.
// The time is negative if there was no INVITE after the response.
func (s *stopper) seen(x *stop) (late time.Duration, before int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	late = -time.Hour
	for _, number := range x.stopped {
		switch at := s.left[number]; {
		case at.IsZero():
		case at.After(x.answered):
			late = max(late, at.Sub(x.answered))
		default:
			before++
		}
	}
	return late, before
}

// TestStops checks pauses, cancellations, withdrawals and suppressions at random moments. No stopped contact may be
// called later than a second after the response. The soak repeats each of them thirty times.
func TestStops(t *testing.T) {
	rounds := 1
	if os.Getenv("PARLEYTEST_SOAK") != "" {
		rounds = 30
	} else {
		t.Parallel()
	}
	s := newStopper(t)
	worst, after, before := map[string]time.Duration{}, map[string]int{}, map[string]int{}
	for range rounds {
		var all []*stop
		for _, verb := range stopWays() {
			all = append(all, s.begin(t, verb))
		}
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		<-time.After(time.Second)
		for _, x := range all {
			<-time.After(time.Duration(rand.IntN(400)) * time.Millisecond)
			s.do(t, x)
		}
		<-time.After(stopsWithin + 500*time.Millisecond)
		for _, x := range all {
			late, dialed := s.seen(x)
			if before[x.verb] += dialed; late > 0 {
				after[x.verb]++
			}
			if worst[x.verb] = max(worst[x.verb], late); late > stopsWithin {
				t.Errorf("%s: an INVITE was sent %v after the response", x.verb, late)
			}
			_ = s.api.Do(t.Context(), http.MethodPost, "/v1/campaigns/"+x.id+"/cancel", nil, &map[string]any{}) // the campaign may be completed
		}
	}
	for _, verb := range stopWays() {
		if before[verb] == 0 {
			t.Errorf("%s: no INVITE was sent before", verb)
		}
		t.Logf("%s: %d rounds, %d INVITEs before the response, in %d rounds one after it, at most %v later", verb, rounds, before[verb], after[verb], worst[verb])
	}
}
