// Package api measures the HTTP API of a parley serve from outside: orders that
// are given while the queue drains into a scripted carrier, calls that are read,
// and lists over many stored calls. Client, carrier, service and database share
// the machine.
package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/parley-voice/parley/bench/machine"
	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/served"
	"github.com/parley-voice/parley/sip/siptest"
)

// Options of Run.
type Options struct {
	// Child makes a command of this program.
	Child func(ctx context.Context, args ...string) *exec.Cmd
	// Database is a Postgres connection string; empty has the service run its
	// own.
	Database  string
	Subgroups int           // that orders are spread over
	Rate      int           // orders a second, whatever the service does
	Clients   int           // that order and read as fast as they are answered
	Length    time.Duration // of each measurement
	Stored    int           // calls that lists go over; 0 measures no lists
	Page      int           // calls of a page
	Out, Log  io.Writer
	Result    *result.File // gets what is measured
}

// A bench is a service that is being measured.
type bench struct {
	Options
	*served.Server

	routes  []string // subgroup ids, by name
	rang    atomic.Int64
	carrier *siptest.Carrier
	disk    *machine.Disk // what its disk gives, or that of its client where the database is elsewhere
}

// Run measures, and prints a table.
func Run(ctx context.Context, o Options) (err error) {
	b := &bench{Options: o, Server: &served.Server{Child: o.Child, Database: o.Database, Log: o.Log}}
	b.carrier = &siptest.Carrier{
		Listen:   "127.0.0.1:0",
		OnInvite: func(siptest.Invite) { b.rang.Add(1) },
		Answer:   func(siptest.Invite) siptest.Script { return siptest.Script{After: time.Second, Status: 486} },
	}
	if b.disk, err = machine.OpenDisk(""); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.disk.Close()) }()
	if err = b.carrier.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.carrier.Close()) }()
	defer func() { err = errors.Join(err, b.Stop()) }()
	if err = b.Start(ctx); err != nil {
		return err
	}
	if err = b.furnish(ctx); err != nil {
		return err
	}
	return b.measure(ctx)
}

// spent is what the service and its database spent so far.
func (b *bench) spent() time.Duration {
	c := machine.Spent(b.PID)
	return c.Own + c.Below
}

// warmUp is how long orders are given before they are counted: a service that has
// just begun plans each statement on each of its connections.
const warmUp = 3 * time.Second

// measure does one thing after the other.
func (b *bench) measure(ctx context.Context) error {
	t := &table{Writer: tabwriter.NewWriter(b.Out, 0, 4, 2, ' ', tabwriter.AlignRight), bench: b}
	defer t.end()
	if err := t.head(ctx); err != nil {
		return err
	}
	id, err := b.orders(ctx, t)
	if err != nil {
		return err
	}
	rang, cpu := b.rang.Load(), b.spent()
	if err = b.rest(ctx); err != nil {
		return err
	}
	fmt.Fprintf(t, "calls dialled and found busy\tnothing\t\t\t\t\t\t%.0f\t%.2f\t\n", float64(b.rang.Load()-rang)/b.Length.Seconds(),
		float64(b.spent()-cpu)/float64(time.Millisecond)/float64(max(b.rang.Load()-rang, 1)))
	if err = b.drained(ctx); err != nil {
		return err
	}
	t.run("reads", "GET /v1/calls/{id}", b.atOnce(), func() answers {
		return closed(ctx, b.Clients, b.Length, func(ctx context.Context, _ int) error {
			return b.Ask(ctx, http.MethodGet, "/v1/calls/"+id, nil, &struct{}{})
		})
	})
	if b.Stored == 0 {
		return nil
	}
	if err = b.fill(ctx); err != nil {
		return err
	}
	t.run("pages", fmt.Sprintf("GET /v1/calls, %d stored", b.Stored), "one at a time", func() answers { return b.pages(ctx) }, result.Most("p99", 30))
	return nil
}

// orders measures how orders are taken, and returns the id of one of the calls.
func (b *bench) orders(ctx context.Context, t *table) (string, error) {
	var last atomic.Pointer[string]
	order := func(routes []string) func(context.Context, int) error {
		return func(ctx context.Context, n int) error {
			id, err := b.order(ctx, routes[n%len(routes)])
			if err == nil {
				last.Store(&id)
			}
			return err
		}
	}
	what := fmt.Sprintf("POST /v1/calls/phone, %d subgroups", len(b.routes))
	open(ctx, b.Rate, warmUp, order(b.routes))
	for _, m := range []struct {
		name, what, asked string
		do                func() answers
		bounds            []result.Bound
	}{
		{"orders_at_rate", what, fmt.Sprintf("%d/s", b.Rate), func() answers { return open(ctx, b.Rate, b.Length, order(b.routes)) }, []result.Bound{result.Most("p99", 50)}},
		{"orders", what, b.atOnce(), func() answers { return closed(ctx, b.Clients, b.Length, order(b.routes)) }, nil},
		{"orders_one_subgroup", "POST /v1/calls/phone, 1 subgroup", b.atOnce(), func() answers { return closed(ctx, b.Clients, b.Length, order(b.routes[:1])) }, nil},
	} {
		if err := t.written(ctx, m.name, func() int { return t.run(m.name, m.what, m.asked, m.do, m.bounds...) }); err != nil {
			return "", err
		}
	}
	if id := last.Load(); id != nil {
		return *id, nil
	}
	return "", errors.New("no order was accepted")
}

func (b *bench) atOnce() string { return fmt.Sprintf("%d at a time", b.Clients) }

// perSecond are the targets of answers a second.
func perSecond(name string) []result.Bound {
	switch name {
	case "orders":
		return []result.Bound{result.Least("value", 500)}
	case "reads":
		return []result.Bound{result.Least("value", 2000)}
	default:
		return nil
	}
}

// keep adds what was measured to the result.
func (b *bench) keep(name, what string, r answers, bounds []result.Bound) {
	f := b.Result
	f.Add(result.Spread(name+"_ms", what, "ms", r.millis(), bounds...))
	m := result.Figure(name+"_per_second", what+": answered", "/s", result.Exactly(r.perSecond()), perSecond(name)...)
	m.More = true
	f.Add(m)
	f.Add(result.Share(name+"_refused", what+": not answered as it should be", r.failed, r.failed+len(r.each), result.Most("times", 0)))
	if len(r.late) > 0 {
		f.Generated("requests", r.late, punctual)
	}
}

// punctual is how late a request that is due may leave, in ms, at p99.
const punctual = 20

// rest asks nothing for Length, while the queue drains.
func (b *bench) rest(ctx context.Context) error {
	select {
	case <-time.After(b.Length):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drained waits until no call is dialled for a second, two minutes at most: who
// reads calls has the machine alone.
func (b *bench) drained(ctx context.Context) error {
	for range 120 {
		rang := b.rang.Load()
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
		if b.rang.Load() == rang {
			break
		}
	}
	return nil
}

// order gives an order through a subgroup.
func (b *bench) order(ctx context.Context, route string) (string, error) {
	var c struct {
		CallID string `json:"call_id"`
	}
	err := b.Ask(ctx, http.MethodPost, "/v1/calls/phone", map[string]any{
		"agent_id": "bench", "to_number": "+12025550123", "route_id": route, "variables": map[string]any{"first_name": "Ada"},
	}, &c)
	return c.CallID, err
}

// pages walks through the list, over and over, for Length.
func (b *bench) pages(ctx context.Context) answers {
	query := url.Values{"limit": {fmt.Sprint(b.Page)}}
	return closed(ctx, 1, b.Length, func(ctx context.Context, _ int) error {
		var page struct {
			Calls []struct{} `json:"calls"`
			Next  string     `json:"next_cursor"`
		}
		if err := b.Ask(ctx, http.MethodGet, "/v1/calls?"+query.Encode(), nil, &page); err != nil {
			return err
		}
		if len(page.Calls) == 0 {
			return errors.New("an empty page")
		}
		if query.Del("cursor"); page.Next != "" {
			query.Set("cursor", page.Next)
		}
		return nil
	})
}
