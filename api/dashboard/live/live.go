// Package live has the start page with the figures of calls over time, and the page of active calls and of the health
// of trunks, agents and providers, kept up to date by a stream.
package live

import (
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-voice/parley/api/calls"
	campaignpages "github.com/parley-voice/parley/api/dashboard/campaigns"
	"github.com/parley-voice/parley/api/dashboard/chart"
	"github.com/parley-voice/parley/api/dashboard/ui"
	campaigns "github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/overview"
	"github.com/parley-voice/parley/media"
)

//go:embed pages/*.html
var files embed.FS

// Live serves the pages. Its fields are set once.
type Live struct {
	Campaigns *campaigns.Store
	// TrunkStatus returns the state of a trunk: up, down or unknown. nil means that no state is
	// known.
	TrunkStatus func(media.Trunk) string
	// Providers returns the providers used on this server; nil means that none are known.
	Providers func() []Provider
	// Currency is that of costs.
	Currency string
	// Calls reads the call in the side panel.
	Calls *calls.Calls
	// Agents and Checks test what the first call needs; nil skips these tests.
	Agents agents.ProviderChecker
	Checks Checks
	// Idle returns the running campaigns that do not dial, and why; nil skips them.
	Idle func(r *ui.Request, ids []string) ([]campaignpages.Idle, error)
	// Stopping reports whether the server is about to stop, so that pages reconnect
	// elsewhere. Nil means never.
	Stopping func() bool

	mu      sync.Mutex
	streams map[string]int // number of streams by session, by organization, and in all ("")
}

// Module returns the pages.
func (l *Live) Module() (ui.Module, error) {
	pages, err := fs.Sub(files, "pages")
	return ui.Module{
		Name: "live", Files: pages,
		Links: []ui.Link{{Label: "ui.menu.overview", Path: "overview"}, {Label: "ui.menu.live", Path: "live"}},
		Routes: []ui.Route{
			{Path: "overview", Show: l.showOverview},
			{Path: "overview/export", Serve: l.export, Timeout: exportTimeout},
			{Path: "start", Show: l.showStart},
			{Path: "start/carrier", Submit: l.checkCarrier, Back: "start", Timeout: checkTimeout},
			{Path: "start/providers", Submit: l.testProviders, Back: "start", Timeout: checkTimeout},
			{Path: "start/agent", Submit: l.createAgent, Back: "start"},
			{Path: "start/attach", Submit: l.attach, Back: "start"},
			{Path: "start/hide", Submit: l.hide, Back: "start"},
			{Path: "live", Show: l.show},
			{Path: "live/events", Serve: l.stream},
		},
	}, err
}

// exportTimeout limits an export, checkTimeout tests of carriers and providers.
const (
	exportTimeout = 30 * time.Second
	checkTimeout  = 20 * time.Second
)

// shownCalls limits the calls on the page; the others are counted.
const shownCalls = 50

type call struct {
	overview.Call

	Number string
	// Response is the last response time in ms, 0 if there is none; Mark is its CSS class.
	Response float64
	Mark     string
	Chosen   bool // shown in the panel
}

type line struct {
	overview.Route

	State string // up, down, degraded or unknown
	Text  string
}

// A Provider is a speech-to-text, model or voice provider.
type Provider struct {
	Kind, Name    string // kind asr, llm or tts
	OrgID         string // organization that owns the endpoint, which alone sees it; empty for the operator's
	Active, Limit int    // current and allowed concurrent requests; 0 means no limit
	// Open means that requests are suspended after failures, at least until Until. Probing means that
	// a probe is running.
	Open, Probing bool
	Until         time.Time
}

type providerState struct {
	Provider

	State string // up, degraded or down
	Text  string
}

func assess(texts *ui.Texts, p Provider, now time.Time, dates ui.Dates) providerState {
	s := providerState{Provider: p, State: "up", Text: texts.T("live.provider.healthy")}
	switch {
	case p.Probing:
		s.State, s.Text = "degraded", texts.T("live.provider.probing")
	case p.Open && p.Until.After(now):
		s.State, s.Text = "down", texts.T("live.provider.suspended.until", "time", dates.Second(p.Until))
	case p.Open:
		s.State, s.Text = "degraded", texts.T("live.provider.suspended.over")
	case p.Limit > 0 && p.Active >= p.Limit:
		s.State, s.Text = "degraded", texts.T("live.provider.at_limit")
	}
	return s
}

type pace struct {
	campaigns.CampaignPace

	Meter any // an SVG drawing
}

type now struct {
	Calls                    []call
	Ongoing, Ringing, Queued int
	Others                   int    // calls in addition to the shown ones
	Panel                    *panel // nil if no call is chosen

	Ready  bool // a route can be used
	Lines  []line
	Agents []overview.Agent
	// Providers are the providers that this server uses.
	Providers []providerState
	Loads     bool // show the load of providers, only in the root organization
	Paces     []pace
}

func (l *Live) show(r *ui.Request) (ui.Page, error) {
	var n now
	err := l.calls(r, &n)
	if err == nil {
		err = l.health(r, &n)
	}
	return page(r.Texts, n), err
}

func page(texts *ui.Texts, n now) ui.Page {
	return ui.Page{
		Template: "live.html", Title: texts.T("live.title"), Data: n,
		Actions: []ui.Link{{Label: texts.T("live.action.stop_calls"), Path: "campaigns/pause", Danger: true}},
	}
}

func (l *Live) calls(r *ui.Request, n *now) error {
	all, counts, err := overview.ActiveCalls(r.Context(), r.DB(), r.Org(), shownCalls)
	if err != nil {
		return err
	}
	n.Ongoing, n.Ringing, n.Queued = counts[control.Ongoing], counts[control.Ringing], counts[control.Queued]
	n.Others = max(0, n.Ongoing+n.Ringing+n.Queued-len(all))
	for _, c := range all {
		x := call{Call: c, Number: ui.FormatNumber(c.To), Chosen: c.ID == r.Query(chosenCall)}
		if c.Type == control.Web {
			x.Number = r.Texts.T("live.calls.web_call")
		}
		x.Response, x.Mark = lastResponse(chart.Turns(r.Texts, c.Turns))
		n.Calls = append(n.Calls, x)
	}
	if n.Panel, err = l.panel(r); n.Panel != nil {
		n.Panel.EndAsked = slices.ContainsFunc(all, func(c overview.Call) bool { return c.ID == n.Panel.ID && c.EndAsked })
	}
	return err
}

func (l *Live) health(r *ui.Request, n *now) error {
	routes, err := overview.Routes(r.Context(), r.DB(), r.Org())
	if err != nil {
		return err
	}
	for _, x := range routes {
		n.Lines = append(n.Lines, l.line(x, r))
	}
	n.Ready = len(n.Lines) > 0
	if n.Agents, err = overview.Agents(r.Context(), r.DB(), r.Org()); err != nil {
		return err
	}
	n.Loads = r.Root
	if l.Providers != nil {
		for _, p := range l.Providers() {
			if p.OrgID != "" && p.OrgID != r.Org() {
				continue // another organization's own endpoint
			}
			n.Providers = append(n.Providers, assess(r.Texts, p, time.Now(), ui.DatesOf(r.Member)))
		}
	}
	paces, err := l.Campaigns.Paces(r.Context(), r.DB(), r.Org(), 20)
	for _, p := range paces {
		label := r.Texts.T("live.pace.meter", "dialed", p.Dialed, "target", p.Target)
		n.Paces = append(n.Paces, pace{p, chart.Meter(label, p.Dialed, p.Target)})
	}
	return err
}

func (l *Live) line(x overview.Route, r *ui.Request) line {
	s := line{Route: x, State: "unknown", Text: r.Texts.T("live.trunk.unknown")}
	status := ""
	if l.TrunkStatus != nil {
		status = l.TrunkStatus(x.Line.MediaTrunk())
	}
	switch {
	case x.Breaker == "probing":
		s.State, s.Text = "degraded", r.Texts.T("live.trunk.probing")
	case x.Breaker == "open" && x.Why == "unreachable", x.Down, status == "down":
		s.State, s.Text = "down", r.Texts.T("live.trunk.unreachable")
	case x.Breaker == "open":
		s.State, s.Text = "down", r.Texts.T("live.trunk.paused")
		if x.Probe != nil {
			s.Text = r.Texts.T("live.trunk.paused.until", "time", ui.DatesOf(r.Member).Second(*x.Probe))
		}
	case x.InUse >= x.Most:
		s.State, s.Text = "degraded", r.Texts.T("live.trunk.full")
	case status == "up":
		s.State, s.Text = "up", r.Texts.T("live.trunk.reachable")
	}
	return s
}

// Streams: interval of polls, polls per slow update, and limits per server, organization and
// session. Pages without a stream poll by themselves.
const (
	pollInterval = time.Second
	slowEvery    = 5 // number of polls
	mostStreams  = 200
	mostOfOrg    = 60
	mostSessions = 10
)

// enter counts a stream and reports whether the limits allow it.
func (l *Live) enter(session, org string) (leave func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kinds := map[string]int{"": mostStreams, "organization " + org: mostOfOrg, "session " + session: mostSessions}
	for kind, most := range kinds {
		if l.streams[kind] >= most {
			return nil, false
		}
	}
	if l.streams == nil {
		l.streams = map[string]int{}
	}
	for kind := range kinds {
		l.streams[kind]++
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for kind := range kinds {
			if l.streams[kind]--; l.streams[kind] == 0 {
				delete(l.streams, kind)
			}
		}
	}, true
}

// stream streams changed parts until the client disconnects.
func (l *Live) stream(r *ui.Request) error {
	leave, ok := l.enter(r.Session.Ref(), r.Org())
	if ok {
		defer leave()
	}
	if !ok || l.stopping() {
		return &ui.ProblemError{
			Status: http.StatusServiceUnavailable, Title: r.Texts.T("live.streams.full.title"), Text: r.Texts.T("live.streams.full.text"),
		}
	}
	w := http.NewResponseController(r.Writer)
	_ = w.SetReadDeadline(time.Time{}) // without support, the stream ends early and the page reconnects
	r.Writer.Header().Set("Content-Type", "text/event-stream")
	r.Writer.WriteHeader(http.StatusOK)
	if r.HTTP.Method == http.MethodHead {
		return nil
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	s := stream{sent: map[string]string{}}
	for n := 0; !l.stopping(); n++ {
		if err := l.send(r, n%slowEvery == 0, &s); err != nil {
			return nil // the page reconnects and gets the error
		}
		if w.Flush() != nil {
			return nil // the client has disconnected
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return nil
		}
	}
	return nil
}

func (l *Live) stopping() bool { return l.Stopping != nil && l.Stopping() }

type stream struct {
	sent  map[string]string // HTML that was sent last, by part of the page
	ready bool              // the value of the last slow update
}

func (l *Live) send(r *ui.Request, all bool, s *stream) error {
	if all {
		if err := r.Still(); err != nil {
			return err
		}
	}
	n := now{Ready: s.ready}
	if err := l.calls(r, &n); err != nil {
		return err
	}
	parts := []string{"calls"}
	if n.Panel != nil {
		parts = append(parts, "panel")
	}
	if all {
		if err := l.health(r, &n); err != nil {
			return err
		}
		parts = append(parts, "health")
		s.ready = n.Ready
	}
	for _, name := range parts {
		html, err := r.Part("live", page(r.Texts, n), name)
		if err != nil {
			return err
		}
		if s.sent[name] == html {
			continue
		}
		s.sent[name] = html
		if _, err = fmt.Fprintf(r.Writer, "event: %s\ndata: %s\n\n", name, strings.ReplaceAll(html, "\n", "\ndata: ")); err != nil {
			return err
		}
	}
	if len(s.sent) == 0 || all {
		_, err := fmt.Fprint(r.Writer, ": here\n\n") // keeps proxies from closing an idle connection
		return err
	}
	return nil
}
