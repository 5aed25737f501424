package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// States of the breaker of a route.
const (
	RouteClosed  = "closed"  // campaigns call through it
	RouteOpen    = "open"    // they are kept off it
	RouteProbing = "probing" // but for one call, which tries it
)

// Campaigns are how campaigns that run, and the routes that they call through, get
// on. What is over is not among them, so that its series end.
type Campaigns struct {
	// Looks tells that this node looks after them; else another does, and here is
	// nothing.
	Looks   bool
	Running int
	All     []Campaign
	Routes  map[string]string // states, by id
}

// A Campaign is how one gets on.
type Campaign struct {
	ID             string
	Asked, Dialled int // calls a minute; in the last one
	InFlight       int
	Ready          int
	Held           map[string]int // by reason
	Idle           bool           // it could dial, and has not for long
}

// Dialled is told what came of a call of a campaign.
func (m *Metrics) Dialled(outcome string) { m.dials.WithLabelValues(outcome).Inc() }

// campaigning shows campaigns, looked at once a scrape.
type campaigning struct {
	look func() Campaigns
	desc map[string]*prometheus.Desc
}

// Names of what is shown of campaigns.
const (
	runningName = "parley_campaigns_running"
	askedName   = "parley_campaign_pace_asked"
	dialledName = "parley_campaign_dialled"
	flightName  = "parley_campaign_in_flight"
	readyName   = "parley_campaign_ready"
	heldName    = "parley_campaign_held"
	idleName    = "parley_campaign_running_but_idle"
	routeName   = "parley_route_breaker"
)

func newCampaigning(look func() Campaigns) campaigning {
	c := campaigning{look, map[string]*prometheus.Desc{}}
	add := func(name, help string, labels ...string) { c.desc[name] = prometheus.NewDesc(name, help, labels, nil) }
	add(runningName, "Campaigns that run.")
	add(askedName, "Calls a minute that a campaign is to make.", "campaign")
	add(dialledName, "Calls that a campaign began in the last minute.", "campaign")
	add(flightName, "Calls of a campaign that are on.", "campaign")
	add(readyName, "Contacts of a campaign that may be called now.", "campaign")
	add(heldName, "Contacts of a campaign that wait, by why they are not called now.", "campaign", "reason")
	add(idleName, "1 where a campaign could dial and has not for long.", "campaign")
	add(routeName, "1 in the state that the breaker of a route is in.", "route", "state")
	return c
}

// Describe implements prometheus.Collector.
func (c campaigning) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.desc {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c campaigning) Collect(to chan<- prometheus.Metric) {
	seen := c.look()
	if !seen.Looks {
		return
	}
	show := func(name string, v int, labels ...string) {
		to <- prometheus.MustNewConstMetric(c.desc[name], prometheus.GaugeValue, float64(v), labels...)
	}
	show(runningName, seen.Running)
	for _, x := range seen.All {
		show(askedName, x.Asked, x.ID)
		show(dialledName, x.Dialled, x.ID)
		show(flightName, x.InFlight, x.ID)
		show(readyName, x.Ready, x.ID)
		for reason, n := range x.Held {
			show(heldName, n, x.ID, reason)
		}
		idle := 0
		if x.Idle {
			idle = 1
		}
		show(idleName, idle, x.ID)
	}
	for route, state := range seen.Routes {
		show(routeName, 1, route, state)
	}
}
