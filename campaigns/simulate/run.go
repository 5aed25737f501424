package simulate

import (
	"bufio"
	"container/heap"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/dialer"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/retry"
)

// channels is the number of channels of a route, so low that its campaigns compete.
const channels = 60

// maxIdle bounds the pause of a campaign that is not woken.
const maxIdle = 24 * time.Hour

// Figures are the totals of a simulation.
type Figures struct {
	Contacts  int `json:"contacts"`
	Campaigns int `json:"campaigns"`
	Dials     int `json:"dials"`
	Decisions int `json:"decisions"`
	// Took is the wall-clock duration.
	Took time.Duration `json:"took"`
}

// A simulation is a running Config.
type simulation struct {
	*memStore
	rng
	all    []Campaign
	events events
	queued int
	dials  int
}

// Run simulates and writes the files to a folder. progress receives values from 0 to 1.
func (w Config) Run(ctx context.Context, dir string, progress func(float64)) (Figures, error) {
	f, err := os.OpenFile(filepath.Join(dir, LogFile), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) //nolint:gosec // own folder
	if err != nil {
		return Figures{}, err
	}
	out := bufio.NewWriterSize(f, 1<<20)
	s, err := w.prepare(dir, &log{w: out})
	if err != nil {
		return Figures{}, closeFile(f, err)
	}
	began := time.Now()
	err = s.run(ctx, w, progress)
	if err == nil {
		err = out.Flush()
	}
	return Figures{
		Contacts: len(s.contacts), Campaigns: len(s.all), Dials: s.dials, Decisions: s.decisions, Took: time.Since(began),
	}, closeFile(f, err)
}

func (w Config) prepare(dir string, l *log) (*simulation, error) {
	d := rng{rand.New(rand.NewPCG(w.Seed, 1))} //nolint:gosec // a simulation must be repeatable
	packages := map[string]*market.Package{}
	for _, code := range market.Codes() {
		if packages[code] = w.Packages[code]; packages[code] != nil {
			continue
		}
		var err error
		if packages[code], err = market.Load(code); err != nil {
			return nil, err
		}
	}
	s := &simulation{rng: d, all: w.campaigns(d)}
	s.memStore = &memStore{now: w.Begin, numbers: map[numberKey]*number{}, byID: map[string]*campaign{}, log: l, onDial: s.onDial}
	s.rows = w.rows(d, s.all, packages["us"].Areas())
	s.contacts = make([]contact, len(s.rows))
	for range organizations {
		s.routes = append(s.routes, route{channels: channels})
	}
	if err := save(dir, s.all, s.rows); err != nil {
		return nil, err
	}
	never, err := s.locate(s.all, packages)
	if err != nil {
		return nil, err
	}
	for _, c := range s.all {
		planned, r, err := c.planned(packages[c.Market])
		if err != nil {
			return nil, err
		}
		run := dialer.Campaign{ID: c.ID, Plan: &planned, RouteID: fmt.Sprintf("rte_%d", c.Route)}
		run.Pace.PerMinute = c.PerMinute
		added := &campaign{Campaign: run, retry: r, route: c.Route, status: campaigns.Scheduled, queues: map[int]*queue{}}
		s.campaigns, s.byID[c.ID] = append(s.campaigns, added), added
	}
	s.schedule(never)
	return s, nil
}

// schedule queues the actions of operators and clients.
func (s *simulation) schedule(never []bool) {
	rows := make([][]int, len(s.all)) // sorted by campaign
	for i, r := range s.rows {
		rows[r.Campaign] = append(rows[r.Campaign], i)
		s.contacts[i].number = s.number(&s.rows[i])
		if n := s.contacts[i].number; r.Listed != 0 && (n.listed == 0 || r.Listed < n.listed) {
			n.listed = r.Listed
		}
		if r.Withdrawn != 0 {
			s.runAt(epoch(r.Withdrawn), func() { s.withdraw(i) })
		}
	}
	for k, c := range s.all {
		s.runAt(epoch(c.StartsAt), func() { s.start(k, rows[k], never) })
		if c.EndsAt != 0 {
			s.runAt(epoch(c.EndsAt), func() { s.closeCampaign(k, campaigns.Completed) })
		}
		begin := epoch(c.StartsAt)
		if s.chance(25) {
			pause := begin.Add(time.Duration(s.IntN(5*24*3600)) * time.Second)
			s.runAt(pause, func() { s.pause(k, campaigns.Running, campaigns.Paused) })
			s.runAt(pause.Add(time.Duration(s.IntN(48*3600))*time.Second), func() { s.pause(k, campaigns.Paused, campaigns.Running) })
		}
		if s.chance(8) {
			s.runAt(begin.Add(time.Duration(s.IntN(20*24*3600))*time.Second), func() { s.closeCampaign(k, campaigns.Canceled) })
		}
	}
}

func (s *simulation) runAt(t time.Time, do func()) {
	s.queued++
	heap.Push(&s.events, event{at: t.UnixNano(), n: s.queued, do: do})
}

// run advances from event to event, and takes contacts in between.
func (s *simulation) run(ctx context.Context, w Config, progress func(float64)) error {
	d := &dialer.Dialer{Store: s.memStore, MaxIdle: maxIdle}
	s.onWaiting = d.Wake
	end := w.end()
	for n := 0; s.now.Before(end); n++ {
		if n%20_000 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			progress(float64(s.now.Sub(w.Begin)) / float64(end.Sub(w.Begin)))
		}
		for len(s.events) > 0 && s.events[0].at <= s.now.UnixNano() {
			heap.Pop(&s.events).(event).do() //nolint:forcetypeassert // has only events
		}
		claim, rest, err := d.Take(ctx)
		if err != nil {
			return err
		}
		if claim != nil {
			s.dials++
			continue
		}
		next := s.now.Add(max(rest, time.Millisecond))
		if len(s.events) > 0 {
			if event := time.Unix(0, s.events[0].at); event.Before(next) {
				next = event
			}
		}
		s.now = next
	}
	progress(1)
	return nil
}

// start launches a campaign. It suppresses contacts that are on a do-not-call list, or to which no call is ever
// legal.
func (s *simulation) start(k int, rows []int, never []bool) {
	c := s.campaigns[k]
	for _, i := range rows {
		r := &s.rows[i]
		if s.contacts[i].state != "" { // the contact was withdrawn
			continue
		}
		switch n := s.contacts[i].number; {
		case never[i]:
			s.suppress(i, campaigns.GeoRejected)
		case n.listed != 0 && n.listed <= s.now.Unix():
			s.suppress(i, campaigns.DNCSuppressed)
		default:
			s.enqueue(c, i, latest(s.now, epoch(r.NotBefore)))
		}
	}
	s.setStatus(c, campaigns.Running)
	s.completeIfDrained(c)
}

func (s *simulation) suppress(i int, reason string) {
	s.contacts[i].state = campaigns.Suppressed
	s.log.state(s.now, i, campaigns.Suppressed, reason)
}

func (s *simulation) pause(k int, from, to campaigns.Status) {
	if c := s.campaigns[k]; c.status == from {
		s.setStatus(c, to)
		s.completeIfDrained(c)
	}
}

func (s *simulation) closeCampaign(k int, to campaigns.Status) {
	if c := s.campaigns[k]; !c.status.IsOver() {
		s.setStatus(c, to)
	}
}

// withdraw withdraws a contact that is pending or awaits its analysis, if its campaign is running or paused.
func (s *simulation) withdraw(i int) {
	c, x := s.campaigns[s.rows[i].Campaign], &s.contacts[i]
	if c.status == campaigns.Scheduled || c.status.IsOver() {
		return
	}
	switch x.state {
	case campaigns.Pending:
		s.setState(c, i, campaigns.Suppressed, campaigns.WithdrawnByClient)
	case campaigns.Awaiting:
		c.busy--
		s.suppress(i, campaigns.WithdrawnByClient)
		s.completeIfDrained(c)
	default:
	}
}

// onDial schedules the end of a new call.
func (s *simulation) onDial(i int) {
	outcome := s.outcome()
	lasts := time.Duration(5+s.IntN(30)) * time.Second
	if outcome.IsConversation() {
		lasts += time.Duration(s.IntN(240)) * time.Second
	}
	s.runAt(s.now.Add(lasts), func() { s.onHangup(i, outcome) })
}

// brokenCall is the outcome in the log of a call that was answered but broke by a fault of the service before a
// conversation. It counts as a failed attempt.
const brokenCall retry.Outcome = "agent_error"

func (s *simulation) outcome() retry.Outcome {
	n := s.IntN(100)
	for _, o := range []struct {
		upTo int
		retry.Outcome
	}{
		{40, retry.NoAnswer},
		{48, retry.Busy},
		{68, retry.Voicemail},
		{71, retry.Declined},
		{72, retry.Failed},
		{73, brokenCall},
		{75, retry.InvalidNumber},
		{78, retry.ShortCall},
	} {
		if n < o.upTo {
			return o.Outcome
		}
	}
	return retry.Answered
}

// onHangup ends a call.
func (s *simulation) onHangup(i int, o retry.Outcome) {
	r, x := &s.rows[i], &s.contacts[i]
	n := x.number
	n.active--
	s.routes[s.all[r.Campaign].Route].used--
	s.log.end(s.now, i, string(o))
	if o == brokenCall {
		o = retry.Failed
	}
	if o.IsConversation() {
		n.Talked = s.now
		x.state = campaigns.Awaiting
		s.runAt(s.now.Add(20*time.Second), func() { s.applyOutcome(i, o) })
		return
	}
	s.applyOutcome(i, o)
}

// applyOutcome decides the next state of a contact after a call.
func (s *simulation) applyOutcome(i int, o retry.Outcome) {
	c, x := s.campaigns[s.rows[i].Campaign], &s.contacts[i]
	if x.state == campaigns.Suppressed { // the contact was withdrawn before the analysis
		return
	}
	analysis := map[string]json.RawMessage{}
	if s.chance(20) {
		analysis["callback_requested"] = json.RawMessage("true")
		analysis["callback_at"] = json.RawMessage(strconv.FormatInt(s.now.Unix()+int64(s.IntN(86400)), 10))
	}
	next := c.retry.Next(retry.History{
		Dials: x.dials, Outcome: o, Uses: x.uses, Analysis: analysis, Spread: 2*s.Float64() - 1,
	}, s.now)
	c.busy--
	switch {
	case next.Redial:
		if next.Rule >= 0 {
			if x.uses == nil {
				x.uses = map[int]int{}
			}
			x.uses[next.Rule]++
		}
		x.retryAt = next.At
		s.enqueue(c, i, next.At)
		return
	case o.IsConversation() || next.Stopped:
		x.state = campaigns.Done
	default:
		x.state = campaigns.Exhausted
	}
	s.log.state(s.now, i, x.state, "")
	s.completeIfDrained(c)
}

func latest(all ...time.Time) time.Time { return slices.MaxFunc(all, time.Time.Compare) }
