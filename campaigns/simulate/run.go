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
	"github.com/parley-voice/parley/campaigns/dialler"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/retry"
)

// lines is how many calls of a route may be on at once: so few that its
// campaigns wait for each other.
const lines = 60

// patience is how long a campaign sleeps at most that is not woken.
const patience = 24 * time.Hour

// Figures are what a simulation came to.
type Figures struct {
	Contacts  int `json:"contacts"`
	Campaigns int `json:"campaigns"`
	Dials     int `json:"dials"`
	Decisions int `json:"decisions"`
	// Took is how long it took, of the wall's clock.
	Took time.Duration `json:"took"`
}

// A simulation is a world that moves.
type simulation struct {
	*book
	dice
	all    []Campaign
	events events
	queued int
	dials  int
}

// Run simulates a world and leaves its files in a folder. Progress is told how
// far it is, 0 to 1.
func (w World) Run(ctx context.Context, dir string, progress func(float64)) (Figures, error) {
	f, err := os.OpenFile(filepath.Join(dir, LogFile), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) //nolint:gosec // the folder of the simulation
	if err != nil {
		return Figures{}, err
	}
	out := bufio.NewWriterSize(f, 1<<20)
	s, err := w.prepare(dir, &log{w: out})
	if err != nil {
		return Figures{}, finish(f, err)
	}
	began := time.Now()
	err = s.run(ctx, w, progress)
	if err == nil {
		err = out.Flush()
	}
	return Figures{
		Contacts: len(s.contacts), Campaigns: len(s.all), Dials: s.dials, Decisions: s.decisions, Took: time.Since(began),
	}, finish(f, err)
}

// prepare sets the world up.
func (w World) prepare(dir string, l *log) (*simulation, error) {
	d := dice{rand.New(rand.NewPCG(w.Seed, 1))} //nolint:gosec // a simulation is to be repeatable
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
	s := &simulation{dice: d, all: w.campaigns(d)}
	s.book = &book{now: w.Begin, numbers: map[phone]*number{}, byID: map[string]*campaign{}, log: l, called: s.called}
	s.rows = w.rows(d, s.all, packages["us"].Areas())
	s.contacts = make([]contact, len(s.rows))
	for range organizations {
		s.routes = append(s.routes, route{lines: lines})
	}
	if err := save(dir, s.all, s.rows); err != nil {
		return nil, err
	}
	never, err := s.place(s.all, packages)
	if err != nil {
		return nil, err
	}
	for _, c := range s.all {
		planned, r, err := c.planned(packages[c.Market])
		if err != nil {
			return nil, err
		}
		run := dialler.Running{ID: c.ID, Campaign: &planned, RouteID: fmt.Sprintf("rte_%d", c.Route)}
		run.Pace.PerMinute = c.PerMinute
		one := &campaign{Running: run, retry: r, route: c.Route, status: campaigns.Scheduled, queues: map[int]*queue{}}
		s.campaigns, s.byID[c.ID] = append(s.campaigns, one), one
	}
	s.schedule(never)
	return s, nil
}

// schedule lets happen what operators and clients do.
func (s *simulation) schedule(never []bool) {
	of := make([][]int, len(s.all))
	for i, r := range s.rows {
		of[r.Campaign] = append(of[r.Campaign], i)
		s.contacts[i].number = s.number(&s.rows[i])
		if n := s.contacts[i].number; r.Listed != 0 && (n.listed == 0 || r.Listed < n.listed) {
			n.listed = r.Listed
		}
		if r.Withdrawn != 0 {
			s.at(epoch(r.Withdrawn), func() { s.withdraw(i) })
		}
	}
	for k, c := range s.all {
		s.at(epoch(c.StartsAt), func() { s.start(k, of[k], never) })
		if c.EndsAt != 0 {
			s.at(epoch(c.EndsAt), func() { s.over(k, campaigns.Completed) })
		}
		begin := epoch(c.StartsAt)
		if s.chance(25) {
			pause := begin.Add(time.Duration(s.IntN(5*24*3600)) * time.Second)
			s.at(pause, func() { s.pause(k, campaigns.Running, campaigns.Paused) })
			s.at(pause.Add(time.Duration(s.IntN(48*3600))*time.Second), func() { s.pause(k, campaigns.Paused, campaigns.Running) })
		}
		if s.chance(8) {
			s.at(begin.Add(time.Duration(s.IntN(20*24*3600))*time.Second), func() { s.over(k, campaigns.Cancelled) })
		}
	}
}

func (s *simulation) at(t time.Time, what func()) {
	s.queued++
	heap.Push(&s.events, event{at: t.UnixNano(), n: s.queued, what: what})
}

// run moves from event to event, and takes contacts in between.
func (s *simulation) run(ctx context.Context, w World, progress func(float64)) error {
	d := &dialler.Dialler{Book: s.book, Patience: patience}
	s.wakes = d.Wake
	end := w.end()
	for n := 0; s.now.Before(end); n++ {
		if n%20_000 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			progress(float64(s.now.Sub(w.Begin)) / float64(end.Sub(w.Begin)))
		}
		for len(s.events) > 0 && s.events[0].at <= s.now.UnixNano() {
			heap.Pop(&s.events).(event).what() //nolint:forcetypeassert // events alone are in it
		}
		claim, rest, err := d.Take(ctx)
		if err != nil {
			return err
		}
		if claim != nil {
			s.dials++
			continue
		}
		then := s.now.Add(max(rest, time.Millisecond))
		if len(s.events) > 0 {
			if next := time.Unix(0, s.events[0].at); next.Before(then) {
				then = next
			}
		}
		s.now = then
	}
	progress(1)
	return nil
}

// start launches a campaign: its screen leaves out who is listed, and the law
// some.
func (s *simulation) start(k int, rows []int, never []bool) {
	c := s.campaigns[k]
	for _, i := range rows {
		r := &s.rows[i]
		if s.contacts[i].state != "" { // withdrawn
			continue
		}
		switch n := s.contacts[i].number; {
		case never[i]:
			s.suppress(i, campaigns.GeoRejected)
		case n.listed != 0 && n.listed <= s.now.Unix():
			s.suppress(i, campaigns.DNCSuppressed)
		default:
			s.wait(c, i, latest(s.now, epoch(r.NotBefore)))
		}
	}
	s.set(c, campaigns.Running)
	s.drained(c)
}

func (s *simulation) suppress(i int, reason string) {
	s.contacts[i].state = campaigns.Suppressed
	s.log.state(s.now, i, campaigns.Suppressed, reason)
}

func (s *simulation) pause(k int, from, to campaigns.Status) {
	if c := s.campaigns[k]; c.status == from {
		s.set(c, to)
		s.drained(c)
	}
}

func (s *simulation) over(k int, to campaigns.Status) {
	if c := s.campaigns[k]; !c.status.Over() {
		s.set(c, to)
	}
}

// withdraw takes a contact back, where that is possible.
func (s *simulation) withdraw(i int) {
	c, x := s.campaigns[s.rows[i].Campaign], &s.contacts[i]
	if c.status == campaigns.Scheduled || c.status.Over() {
		return
	}
	switch x.state {
	case campaigns.Pending:
		s.leave(c, i, campaigns.Suppressed, campaigns.WithdrawnByClient)
	case campaigns.Awaiting:
		c.busy--
		s.suppress(i, campaigns.WithdrawnByClient)
		s.drained(c)
	default:
	}
}

// called makes a call that was just begun end.
func (s *simulation) called(i int) {
	outcome := s.outcome()
	last := time.Duration(5+s.IntN(30)) * time.Second
	if outcome.Conversation() {
		last += time.Duration(s.IntN(240)) * time.Second
	}
	s.at(s.now.Add(last), func() { s.hungUp(i, outcome) })
}

func (s *simulation) outcome() retry.Outcome {
	n := s.IntN(100)
	for _, o := range []struct {
		upTo int
		retry.Outcome
	}{{40, retry.NoAnswer}, {48, retry.Busy}, {68, retry.Voicemail}, {71, retry.Declined}, {73, retry.Failed}, {75, retry.InvalidNumber}, {78, retry.ShortCall}} {
		if n < o.upTo {
			return o.Outcome
		}
	}
	return retry.Answered
}

// hungUp is the end of a call.
func (s *simulation) hungUp(i int, o retry.Outcome) {
	r, x := &s.rows[i], &s.contacts[i]
	n := x.number
	n.on--
	s.routes[s.all[r.Campaign].Route].used--
	s.log.end(s.now, i, string(o))
	if o.Conversation() {
		n.Talked = s.now
		x.state = campaigns.Awaiting
		s.at(s.now.Add(20*time.Second), func() { s.settle(i, o) })
		return
	}
	s.settle(i, o)
}

// settle decides what becomes of a contact after a call.
func (s *simulation) settle(i int, o retry.Outcome) {
	c, x := s.campaigns[s.rows[i].Campaign], &s.contacts[i]
	if x.state == campaigns.Suppressed { // withdrawn while its analysis was awaited
		return
	}
	analysis := map[string]json.RawMessage{}
	if s.chance(20) {
		analysis["callback_requested"] = json.RawMessage("true")
		analysis["callback_at"] = json.RawMessage(strconv.FormatInt(s.now.Unix()+int64(s.IntN(86400)), 10))
	}
	next := c.retry.Next(retry.Tried{
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
		s.wait(c, i, next.At)
		return
	case o.Conversation() || next.Stopped:
		x.state = campaigns.Done
	default:
		x.state = campaigns.Exhausted
	}
	s.log.state(s.now, i, x.state, "")
	s.drained(c)
}

func latest(all ...time.Time) time.Time { return slices.MaxFunc(all, time.Time.Compare) }
