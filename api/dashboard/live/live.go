// Package live is the page that the dashboard opens with: the calls that are on, as
// they go on, and how it stands with all that they need.
package live

import (
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/api/dashboard/chart"
	"github.com/parley-voice/parley/api/dashboard/frame"
	"github.com/parley-voice/parley/api/dashboard/words"
	campaigns "github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/overview"
	"github.com/parley-voice/parley/media"
)

//go:embed pages/*.html
var files embed.FS

// Live is the room. Its fields are set once.
type Live struct {
	Campaigns *campaigns.Store
	// Standing says how it stands with a trunk: up, down or unknown; nil knows of
	// none.
	Standing func(media.Trunk) string
	// Providers are those that agents asked on this server; nil knows of none.
	Providers func() []Provider
	// Leaving tells that the server is about to stop: pages look for another then.
	// Nil is never.
	Leaving func() bool

	streams atomic.Int64
}

// Room returns its pages.
func (l *Live) Room() (frame.Room, error) {
	pages, err := fs.Sub(files, "pages")
	return frame.Room{
		Name: "live", Files: pages,
		Links:  []frame.Link{{Label: "Live", Path: "live"}},
		Routes: []frame.Route{{Path: "live", Look: l.look}, {Path: "live/events", Serve: l.follow}},
	}, err
}

// shownCalls is how many calls the page has; the others are counted.
const shownCalls = 50

// A call is one that is on.
type call struct {
	overview.Call

	Number, Route string
	Since         int64 // epoch seconds
	Turns         []chart.Turn
}

// A line is a route, and how it stands with it.
type line struct {
	overview.Route

	State string // up, down, degraded or unknown
	Says  string
}

// A Provider is one that agents hear, think or speak by.
type Provider struct {
	Does, Name  string
	Asked, Most int // streams, answers or utterances that it has now, and may have; 0 is no limit
	// Open tells that it is left alone after it failed, at least until then; Tried that
	// it is tried whether it works again.
	Open, Tried bool
	Until       time.Time
}

// A seam is a provider, and how it stands with it.
type seam struct {
	Provider

	State string // up, degraded or down
	Says  string
}

// judge says how it stands with a provider.
func judge(p Provider, now time.Time, zone *time.Location) seam {
	s := seam{Provider: p, State: "up", Says: "It is asked."}
	switch {
	case p.Tried:
		s.State, s.Says = "degraded", "One call tries whether it works again; others use the fallback, where they have one."
	case p.Open && p.Until.After(now):
		s.State, s.Says = "down", "It failed several times in a row, and is left alone until "+p.Until.In(zone).Format("15:04:05")+"; calls use the fallback, where they have one."
	case p.Open:
		s.State, s.Says = "degraded", "It failed several times in a row, and was left alone: the next call tries whether it works again."
	case p.Most > 0 && p.Asked >= p.Most:
		s.State, s.Says = "degraded", "It has as many at a time as it may; others use the fallback, where they have one."
	}
	return s
}

type pace struct {
	campaigns.Pace

	Meter any // an SVG
}

// now is what the page shows: what changes fast, and what changes slowly.
type now struct {
	Calls                    []call
	Ongoing, Ringing, Queued int
	Others                   int // calls that are not shown
	Phases                   []chart.Phase

	Lines  []line
	Agents []overview.Agent
	// Providers are those of this server.
	Providers []seam
	Loads     bool // of all organizations: how much providers have to do is shown
	Paces     []pace
	Asked     int // calls a minute, of all campaigns
	Made      int
}

func (l *Live) look(r *frame.Request) (frame.Page, error) {
	n := now{Phases: chart.Phases()}
	err := l.calls(r, &n)
	if err == nil {
		err = l.health(r, &n)
	}
	return page(n), err
}

func page(n now) frame.Page { return frame.Page{Template: "live.html", Title: "Live", Data: n} }

func (l *Live) calls(r *frame.Request, n *now) error {
	all, counts, err := overview.On(r.Context(), r.DB(), r.Org(), shownCalls)
	if err != nil {
		return err
	}
	n.Ongoing, n.Ringing, n.Queued = counts[control.Ongoing], counts[control.Ringing], counts[control.Queued]
	n.Others = max(0, n.Ongoing+n.Ringing+n.Queued-len(all))
	for _, c := range all {
		x := call{Call: c, Number: words.Number(c.To), Route: c.Trunk, Since: c.CreatedAt.Unix(), Turns: chart.Turns(c.Turns)}
		if c.Type == control.Web {
			x.Number, x.Route = "Web call", ""
		}
		if x.Route != "" && c.Route != "" && c.Route != "default" {
			x.Route += " / " + c.Route
		}
		if c.AnsweredAt != nil {
			x.Since = c.AnsweredAt.Unix()
		}
		n.Calls = append(n.Calls, x)
	}
	return nil
}

func (l *Live) health(r *frame.Request, n *now) error {
	routes, err := overview.Routes(r.Context(), r.DB(), r.Org())
	if err != nil {
		return err
	}
	for _, x := range routes {
		n.Lines = append(n.Lines, l.line(x, r))
	}
	if n.Agents, err = overview.Agents(r.Context(), r.DB(), r.Org()); err != nil {
		return err
	}
	n.Loads = r.Root
	if l.Providers != nil {
		for _, p := range l.Providers() {
			n.Providers = append(n.Providers, judge(p, time.Now(), r.Zone()))
		}
	}
	paces, err := l.Campaigns.Paces(r.Context(), r.DB(), r.Org(), 20)
	for _, p := range paces {
		n.Asked, n.Made = n.Asked+p.Asked, n.Made+p.Dialled
		n.Paces = append(n.Paces, pace{p, chart.Meter(fmt.Sprintf("%d of %d calls a minute", p.Dialled, p.Asked), p.Dialled, p.Asked)})
	}
	return err
}

// line judges a route: whether calls get through it, as far as is known.
func (l *Live) line(x overview.Route, r *frame.Request) line {
	s := line{Route: x, State: "unknown", Says: "No call has told yet whether its carrier is there."}
	standing := ""
	if l.Standing != nil {
		standing = l.Standing(x.Line.Line())
	}
	switch {
	case x.Breaker == "probing":
		s.State, s.Says = "degraded", "One call tries whether it works again."
	case x.Breaker == "open" && x.Why == "unreachable", x.Down, standing == "down":
		s.State, s.Says = "down", "None of its carrier’s servers takes calls."
	case x.Breaker == "open":
		s.State, s.Says = "down", "Too many calls through it failed. Campaigns are kept off it"
		if x.Probe != nil {
			s.Says += " until one is tried at " + x.Probe.In(r.Zone()).Format("15:04:05")
		}
		s.Says += "."
	case x.InUse >= x.Most:
		s.State, s.Says = "degraded", "All its lines are in use."
	case standing == "up":
		s.State, s.Says = "up", "Its carrier answers."
	}
	return s
}

// Of a stream: how often it looks, how often at what changes slowly, and how many of
// them there may be on a server. A page that gets none asks again and again.
const (
	looks       = time.Second
	slowly      = 5 // looks
	mostStreams = 200
)

// follow sends the page's parts as they change, until who looks is gone.
func (l *Live) follow(r *frame.Request) error {
	defer l.streams.Add(-1)
	if l.streams.Add(1) > mostStreams || l.leaving() {
		return &frame.ProblemError{Status: http.StatusServiceUnavailable, Title: "No more streams", Text: "The page is kept up to date without one."}
	}
	w := http.NewResponseController(r.Writer)
	_ = w.SetReadDeadline(time.Time{}) // where it cannot be said the stream is short, and begun anew
	r.Writer.Header().Set("Content-Type", "text/event-stream")
	r.Writer.WriteHeader(http.StatusOK)
	if r.HTTP.Method == http.MethodHead {
		return nil
	}
	tick := time.NewTicker(looks)
	defer tick.Stop()
	sent := map[string]string{}
	for n := 0; !l.leaving(); n++ {
		if err := l.send(r, n%slowly == 0, sent); err != nil {
			return nil // the page begins anew, and is told what is wrong
		}
		if w.Flush() != nil {
			return nil // it is gone
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return nil
		}
	}
	return nil
}

func (l *Live) leaving() bool { return l.Leaving != nil && l.Leaving() }

// send sends the parts that have changed since they were sent last.
func (l *Live) send(r *frame.Request, all bool, sent map[string]string) error {
	if all {
		if err := r.Still(); err != nil {
			return err
		}
	}
	n := now{Phases: chart.Phases()}
	if err := l.calls(r, &n); err != nil {
		return err
	}
	parts := []string{"calls"}
	if all {
		if err := l.health(r, &n); err != nil {
			return err
		}
		parts = append(parts, "health")
	}
	for _, name := range parts {
		html, err := r.Part("live", page(n), name)
		if err != nil {
			return err
		}
		if sent[name] == html {
			continue
		}
		sent[name] = html
		if _, err = fmt.Fprintf(r.Writer, "event: %s\ndata: %s\n\n", name, strings.ReplaceAll(html, "\n", "\ndata: ")); err != nil {
			return err
		}
	}
	if len(sent) == 0 || all {
		_, err := fmt.Fprint(r.Writer, ": here\n\n") // proxies close what is silent
		return err
	}
	return nil
}
