// Package simulate runs campaigns through years of virtual time with the planner and the gate of production, and logs
// every event. campaigns/simulate/oracle checks the files of a simulation independently.
package simulate

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/campaigns/retry"
)

// A Config defines a simulation. The same Config always gives the same simulation.
type Config struct {
	Seed      uint64
	Contacts  int // number of contacts in all campaigns
	Campaigns int
	Begin     time.Time
	Years     int
	// Packages replaces built-in packages by code, to test that wrong rules are detected.
	Packages map[string]*market.Package
}

// A Campaign has the data of a campaign at its creation. Times are epoch seconds, 0 for none.
type Campaign struct {
	ID             string       `json:"id"`
	Org            int          `json:"org"`
	Market         string       `json:"market"`
	Classification string       `json:"classification"`
	Timezone       string       `json:"timezone"`
	ContactZone    bool         `json:"use_contact_timezone"`
	StartsAt       int64        `json:"starts_at"`
	EndsAt         int64        `json:"ends_at"`
	PerMinute      int          `json:"calls_per_minute"`
	Attempts       int          `json:"attempts"`
	Rules          string       `json:"rules,omitempty"`
	Hours          [7][2]string `json:"hours"`  // hours per weekday, Monday first, HH:MM; empty for none
	Window         [2]string    `json:"window"` // calling window of the organization on every day, in its zone
	OrgZone        string       `json:"org_timezone"`
	Daily          *int         `json:"daily,omitempty"` // daily cap of the organization
	CapsOff        bool         `json:"caps_off"`        // disables the caps of the market's policy
	Route          int          `json:"route"`
}

// A Row is a contact of a list.
type Row struct {
	Contact, Campaign           int
	Number, State, Timezone     string
	Priority                    int
	NotBefore, NotAfter, Listed int64 // NotBefore: epoch seconds, 0 for none. Listed: start of the do-not-call entry
	Withdrawn                   int64 // epoch seconds; 0 if it is never withdrawn
	org                         int
	group                       int
}

// An rng makes the random choices of a simulation.
type rng struct{ *rand.Rand }

func (d rng) chance(percent int) bool { return d.IntN(100) < percent }

func pick[T any](d rng, all ...T) T { return all[d.IntN(len(all))] }

// organizations is the number of organizations. The campaigns of an organization share numbers.
const organizations = 20

// zonesOf returns the zones of organizations of a market.
func zonesOf(code string) []string {
	if code == "kz" {
		return []string{"Asia/Almaty"}
	}
	return []string{"America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles", "America/Phoenix", "Pacific/Honolulu"}
}

// campaigns creates all campaigns, spread over the years.
func (w Config) campaigns(d rng) []Campaign {
	all := make([]Campaign, w.Campaigns)
	span := w.end().Sub(w.Begin)
	for i := range all {
		org := i % organizations
		code := "us"
		if org%7 == 6 {
			code = "kz"
		}
		begins := w.Begin.Add(time.Duration(d.Float64() * 0.9 * float64(span)))
		c := Campaign{
			ID: fmt.Sprintf("cmp_%03d", i), Org: org, Market: code, Classification: string(pick(d, market.Classifications()...)),
			Timezone: pick(d, zonesOf(code)...), ContactZone: d.chance(30), StartsAt: begins.Unix(),
			PerMinute: pick(d, 1, 2, 5, 10, 20, 30, 60, 100, 200, 200), Attempts: 1 + d.IntN(5), Route: org,
			Window: [2]string{"09:00", "20:30"}, OrgZone: zonesOf(code)[org%len(zonesOf(code))],
			CapsOff: org == 3,
		}
		if d.chance(50) {
			c.EndsAt = begins.Add(time.Duration(1+d.IntN(40)) * 24 * time.Hour).Unix()
		}
		if org%4 == 1 {
			two := 2
			c.Daily = &two
		}
		if d.chance(25) {
			c.Attempts = max(c.Attempts, 2)
			c.Rules = `[{"on":["no_answer","busy"],"action":"redial","interval_s":5400},{"on":["voicemail"],"action":"redial","interval_s":86400,"max":1},` +
				`{"on":["answered"],"when":{"analysis.callback_requested":true},"action":"redial","at":"analysis.callback_at"},{"on":["declined"],"action":"stop"}]`
		}
		from, to := pick(d, "08:00", "08:00", "09:30", "11:15"), pick(d, "21:00", "21:00", "17:00", "12:45")
		for day := range c.Hours {
			if day < 5 || d.chance(80) {
				c.Hours[day] = [2]string{from, to}
			}
		}
		all[i] = c
	}
	return all
}

func (w Config) end() time.Time { return w.Begin.AddDate(w.Years, 0, 0) }

// rows creates the contacts. Their numbers have all area codes of the United States, or Kazakhstan's mobile prefixes.
// One contact in five repeats a number of the same organization.
func (w Config) rows(d rng, all []Campaign, codes []string) []Row {
	list := make([]Row, w.Contacts)
	known := make([][]string, organizations)
	for i := range list {
		c := all[d.IntN(len(all))]
		var k int
		_, _ = fmt.Sscanf(c.ID, "cmp_%d", &k)
		r := Row{Contact: i, Campaign: k, org: c.Org, Priority: 5}
		if used := known[c.Org]; len(used) > 0 && d.chance(20) {
			r.Number = used[d.IntN(len(used))]
		} else {
			r.Number = randomNumber(d, c.Market, codes)
			known[c.Org] = append(known[c.Org], r.Number)
		}
		if c.Market == "us" && d.chance(3) {
			r.State = pick(d, "FL", "TX", "RI", "LA", "NY", "CA")
		}
		if d.chance(10) {
			r.Timezone = pick(d, zonesOf(c.Market)...)
		}
		if d.chance(10) {
			r.Priority = d.IntN(10)
		}
		if d.chance(2) {
			r.NotBefore = c.StartsAt + int64(d.IntN(5*86400))
		}
		if d.chance(2) {
			r.NotAfter = c.StartsAt + int64(d.IntN(20*86400))
		}
		if d.chance(2) {
			r.Listed = c.StartsAt + int64(d.IntN(10*86400)) - 86400
		}
		if d.chance(1) {
			r.Withdrawn = c.StartsAt + int64(d.IntN(10*86400))
		}
		list[i] = r
	}
	return list
}

func randomNumber(d rng, code string, codes []string) string {
	if code == "kz" {
		return fmt.Sprintf("+7%s%07d", pick(d, "701", "702", "705", "707", "747", "771", "775", "777"), d.IntN(10_000_000))
	}
	return fmt.Sprintf("+1%s%d%06d", codes[d.IntN(len(codes))], 2+d.IntN(8), 200_000+d.IntN(700_000))
}

// planned returns the data for planning and the retry rules.
func (c Campaign) planned(p *market.Package) (plan.Campaign, retry.Config, error) {
	out := plan.Campaign{
		ID: c.ID, Class: market.Classification(c.Classification), Market: p, ContactZone: c.ContactZone,
		Override: plan.Override{Daily: c.Daily},
	}
	if c.CapsOff {
		enabled := false
		out.Override.Enabled = &enabled
	}
	if c.EndsAt > 0 {
		out.Ends = time.Unix(c.EndsAt, 0)
	}
	var err error
	if out.Zone, err = time.LoadLocation(c.Timezone); err != nil {
		return out, retry.Config{}, err
	}
	if out.WindowZone, err = time.LoadLocation(c.OrgZone); err != nil {
		return out, retry.Config{}, err
	}
	for day := range 7 {
		if out.Window[day], err = hours(c.Window); err != nil {
			return out, retry.Config{}, err
		}
		own, fault := hours(c.Hours[day])
		if fault != nil {
			return out, retry.Config{}, fault
		}
		if !own.IsEmpty() {
			out.Hours[day] = []market.Hours{own}
		}
	}
	strategy, text := retry.Standard, map[string]any{"attempts": c.Attempts}
	if c.Rules != "" {
		strategy, text["rules"] = retry.Expert, json.RawMessage(c.Rules)
	}
	raw, err := json.Marshal(text)
	if err != nil {
		return out, retry.Config{}, err
	}
	r, err := retry.Parse(strategy, raw)
	return out, r, err
}

func hours(h [2]string) (market.Hours, error) {
	if h[0] == "" {
		return market.Hours{}, nil
	}
	from, err := market.ParseClock(h[0])
	if err != nil {
		return market.Hours{}, err
	}
	to, err := market.ParseClock(h[1])
	return market.Hours{From: from, To: to}, err
}
