// Package api measures the HTTP API of "parley serve" from outside: call requests, reads of
// calls, and lists over many stored calls. A scripted carrier takes the calls. Client, carrier,
// service and database share one machine.
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
	"github.com/parley-voice/parley/bench/server"
	"github.com/parley-voice/parley/sip/siptest"
)

// Options configure Run.
type Options struct {
	// Child returns a command that runs this program.
	Child func(ctx context.Context, args ...string) *exec.Cmd
	// Database is a Postgres URL; "" lets the service run its own.
	Database  string
	Subgroups int           // number of subgroups over which the requests are spread
	Rate      int           // requests per second; they do not wait for earlier responses
	Clients   int           // number of clients without a fixed rate; each waits for the response before its next request
	Length    time.Duration // length of each measurement
	Stored    int           // number of calls in the list benchmark; 0 skips that benchmark
	Page      int           // calls per page
	Out, Log  io.Writer
	Result    *result.File // receives the metrics
}

// A bench holds the service under test.
type bench struct {
	Options
	*server.Server

	routes  []string // IDs of the subgroups by name
	rang    atomic.Int64
	carrier *siptest.Carrier
	disk    *machine.Disk // the local disk; a remote database uses another one
}

// Run measures and prints a table.
func Run(ctx context.Context, o Options) (err error) {
	b := &bench{Options: o, Server: &server.Server{Child: o.Child, Database: o.Database, Log: o.Log}}
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
	if err = b.configure(ctx); err != nil {
		return err
	}
	return b.measure(ctx)
}

// spent returns the CPU time of the service and its database so far.
func (b *bench) spent() time.Duration {
	c := machine.CPUTime(b.PID)
	return c.Own + c.Below
}

// warmUp is the time of requests that are not counted. A new service plans each statement once per connection.
const warmUp = 3 * time.Second

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
	fmt.Fprintf(t, "calls dialed and found busy\tnothing\t\t\t\t\t\t%.0f\t%.2f\t\n", float64(b.rang.Load()-rang)/b.Length.Seconds(),
		float64(b.spent()-cpu)/float64(time.Millisecond)/float64(max(b.rang.Load()-rang, 1)))
	if err = b.awaitQueue(ctx); err != nil {
		return err
	}
	t.run("reads", "GET /v1/calls/{id}", b.atOnce(), func() answers {
		return closedLoop(ctx, b.Clients, b.Length, func(ctx context.Context, _ int) error {
			return b.Request(ctx, http.MethodGet, "/v1/calls/"+id, nil, &struct{}{})
		})
	})
	if b.Stored == 0 {
		return nil
	}
	if err = b.fill(ctx); err != nil {
		return err
	}
	t.run("pages", fmt.Sprintf("GET /v1/calls, %d stored", b.Stored), "one at a time", func() answers { return b.pages(ctx) },
		result.Most("p99", 30))
	return nil
}

// orders measures call requests and returns the ID of one call.
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
	openLoop(ctx, b.Rate, warmUp, order(b.routes))
	for _, m := range []struct {
		name, what, load string
		do               func() answers
		bounds           []result.Bound
	}{
		{
			"orders_at_rate", what, fmt.Sprintf("%d/s", b.Rate), func() answers { return openLoop(ctx, b.Rate, b.Length, order(b.routes)) },
			[]result.Bound{result.Most("p99", 50)},
		},
		{"orders", what, b.atOnce(), func() answers { return closedLoop(ctx, b.Clients, b.Length, order(b.routes)) }, nil},
		{
			"orders_one_subgroup", "POST /v1/calls/phone, 1 subgroup", b.atOnce(),
			func() answers { return closedLoop(ctx, b.Clients, b.Length, order(b.routes[:1])) }, nil,
		},
	} {
		if err := t.measureWrites(ctx, m.name, func() int { return t.run(m.name, m.what, m.load, m.do, m.bounds...) }); err != nil {
			return "", err
		}
	}
	if id := last.Load(); id != nil {
		return *id, nil
	}
	return "", errors.New("no call request was accepted")
}

func (b *bench) atOnce() string { return fmt.Sprintf("%d at a time", b.Clients) }

// perSecond returns the target for the responses per second of a measurement; nil if it has none.
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

// addMetrics adds the metrics of one measurement to the result.
func (b *bench) addMetrics(name, what string, r answers, bounds []result.Bound) {
	f := b.Result
	f.Add(result.Spread(name+"_ms", what, "ms", r.millis(), bounds...))
	m := result.Figure(name+"_per_second", what+": answered", "/s", result.Exactly(r.perSecond()), perSecond(name)...)
	m.More = true
	f.Add(m)
	f.Add(result.Share(name+"_refused", what+": unexpected responses", r.failed, r.failed+len(r.each), result.Most("times", 0)))
	if len(r.late) > 0 {
		f.CheckGenerator("requests", r.late, maxLateness)
	}
}

// maxLateness is the limit in ms, at p99, for the lateness with which requests are sent.
const maxLateness = 20

// rest sends nothing for Length, so that the queue can drain.
func (b *bench) rest(ctx context.Context) error {
	machine.Sleep(ctx, b.Length)
	return ctx.Err()
}

// awaitQueue waits until no call has been dialed for one second, for at most two minutes. Without
// this, reads would compete with dialing.
func (b *bench) awaitQueue(ctx context.Context) error {
	for range 120 {
		rang := b.rang.Load()
		if !machine.Sleep(ctx, time.Second) || b.rang.Load() == rang {
			break
		}
	}
	return ctx.Err()
}

// order requests a call through a subgroup.
func (b *bench) order(ctx context.Context, route string) (string, error) {
	var c struct {
		CallID string `json:"call_id"`
	}
	err := b.Request(ctx, http.MethodPost, "/v1/calls/phone", map[string]any{
		"agent_id": "bench", "to_number": "+12025550123", "route_id": route, "variables": map[string]any{"first_name": "Ada"},
	}, &c)
	return c.CallID, err
}

// pages reads the list page by page, repeatedly, for Length.
func (b *bench) pages(ctx context.Context) answers {
	query := url.Values{"limit": {fmt.Sprint(b.Page)}}
	return closedLoop(ctx, 1, b.Length, func(ctx context.Context, _ int) error {
		var page struct {
			Calls []struct{} `json:"calls"`
			Next  string     `json:"next_cursor"`
		}
		if err := b.Request(ctx, http.MethodGet, "/v1/calls?"+query.Encode(), nil, &page); err != nil {
			return err
		}
		if len(page.Calls) == 0 {
			return errors.New("the list page is empty")
		}
		if query.Del("cursor"); page.Next != "" {
			query.Set("cursor", page.Next)
		}
		return nil
	})
}
