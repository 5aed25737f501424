package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// States of the circuit breaker of a route.
const (
	RouteClosed  = "closed"  // campaigns use the route
	RouteOpen    = "open"    // campaigns avoid the route
	RouteProbing = "probing" // one call tests the route
)

// Campaigns is the state of the running campaigns and their routes. The metrics of a campaign disappear when it ends.
type Campaigns struct {
	// Active reports whether this node manages the campaigns. On other nodes, the other fields are empty.
	Active  bool
	Running int
	All     []Campaign
	Routes  map[string]string // state of the circuit breaker, by route id
}

// Campaign is the state of one running campaign.
type Campaign struct {
	ID            string
	Asked, Dialed int // calls per minute: requested, and started in the last minute
	InFlight      int
	Ready         int
	Held          map[string]int // number of held contacts by hold reason
	BudgetLeft    *float64       // remaining budget in currency units; nil if there is no budget
	Idle          bool           // the campaign could dial, but has not done so for a long time
}

// CountDial counts the outcome of one dialed call of a campaign.
func (m *Metrics) CountDial(outcome string) { m.dials.WithLabelValues(outcome).Inc() }

// campaignCollector reads the state of the campaigns once for each scrape.
type campaignCollector struct {
	look func() Campaigns
	desc map[string]*prometheus.Desc
}

// Names of the campaign metrics.
const (
	runningName = "parley_campaigns_running"
	askedName   = "parley_campaign_pace_asked"
	dialedName  = "parley_campaign_dialled"
	flightName  = "parley_campaign_in_flight"
	readyName   = "parley_campaign_ready"
	heldName    = "parley_campaign_held"
	budgetName  = "parley_campaign_budget_left"
	idleName    = "parley_campaign_running_but_idle"
	routeName   = "parley_route_breaker"
)

func newCampaignCollector(look func() Campaigns) campaignCollector {
	c := campaignCollector{look, map[string]*prometheus.Desc{}}
	add := func(name, help string, labels ...string) { c.desc[name] = prometheus.NewDesc(name, help, labels, nil) }
	add(runningName, "Running campaigns.")
	add(askedName, "Requested calls per minute of a campaign.", "campaign")
	add(dialedName, "Calls that a campaign placed in the last minute.", "campaign")
	add(flightName, "Calls of a campaign in progress.", "campaign")
	add(readyName, "Contacts of a campaign that are ready to call.", "campaign")
	add(heldName, "Waiting contacts of a campaign, by reason.", "campaign", "reason")
	add(budgetName, "Part of a campaign's budget that is neither spent nor expected to be spent by calls in progress.", "campaign")
	add(idleName, "1 if a campaign could dial but has not done so for long, otherwise 0.", "campaign")
	add(routeName, "1 for the current state of a route's breaker.", "route", "state")
	return c
}

// Describe implements prometheus.Collector.
func (c campaignCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.desc {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c campaignCollector) Collect(to chan<- prometheus.Metric) {
	seen := c.look()
	if !seen.Active {
		return
	}
	show := func(name string, v int, labels ...string) {
		to <- prometheus.MustNewConstMetric(c.desc[name], prometheus.GaugeValue, float64(v), labels...)
	}
	show(runningName, seen.Running)
	for _, x := range seen.All {
		show(askedName, x.Asked, x.ID)
		show(dialedName, x.Dialed, x.ID)
		show(flightName, x.InFlight, x.ID)
		show(readyName, x.Ready, x.ID)
		for reason, n := range x.Held {
			show(heldName, n, x.ID, reason)
		}
		if x.BudgetLeft != nil {
			to <- prometheus.MustNewConstMetric(c.desc[budgetName], prometheus.GaugeValue, *x.BudgetLeft, x.ID)
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
