package oracle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// readEvent checks one line of the log.
func (j *judge) readEvent(cells []string) error {
	if len(cells) < 4 {
		return fmt.Errorf("%q has too few cells", strings.Join(cells, ","))
	}
	at, err := strconv.ParseInt(cells[0], 10, 64)
	if err != nil {
		return err
	}
	if cells[1] == "status" {
		c := j.campaigns[cells[2]]
		if c == nil {
			return fmt.Errorf("campaign %s is unknown", cells[2])
		}
		c.status = strings.Clone(cells[3])
		return nil
	}
	i, err := strconv.Atoi(cells[2])
	if err != nil || i < 0 || i >= len(j.rows) {
		return fmt.Errorf("contact %q is unknown", cells[2])
	}
	r := &j.rows[i]
	switch cells[1] {
	case "dial":
		j.dial(at, i, r)
	case "end":
		n := j.number(r)
		r.onCall, r.last = false, at
		n.active--
		r.broke = cells[3] == "agent_error"
		if cells[3] == "answered" || cells[3] == "short_call" {
			n.talked = at
		}
	case "state":
		j.state(i, r, cells[3])
	default:
		return fmt.Errorf("event %q is unknown", cells[1])
	}
	return nil
}

// state checks the final state of a contact.
func (j *judge) state(i int, r *row, to string) {
	if r.final != "" {
		j.addFault(&j.Lost, "contact %d is %s after it was %s", i, to, r.final)
	}
	if r.broke && to == "done" {
		j.addFault(&j.Lost, "contact %d is done after a call that broke before a conversation", i)
	}
	r.final = strings.Clone(to)
}

// dial checks a call to a contact.
func (j *judge) dial(ms int64, i int, r *row) {
	c, n := j.campaigns[r.campaign], j.number(r)
	l := j.laws[c.Market]
	at := time.UnixMilli(ms)
	j.Dials++
	j.hour(l, at, c, r)
	if rule := l.forbids(at, *r, c.Classification); rule != "" {
		j.addFault(&j.Unlawful, "contact %d, %s of %s: %s", i, r.phone, c.ID, rule)
	}
	if why := outside(l, at, c, r); why != "" {
		j.addFault(&j.Hours, "contact %d of %s: %s", i, c.ID, why)
	}
	for _, why := range overCaps(l, at, c, r, n) {
		j.addFault(&j.OverCap, "contact %d, %s of %s, at %s: %s", i, r.phone, c.ID, at.UTC(), why)
	}
	if n.listed != 0 && n.listed <= at.Unix() || r.final != "" {
		j.addFault(&j.Forbidden, "contact %d of %s, at %s: it is %s, listed at %d", i, c.ID, at.UTC(), r.final, n.listed)
	}
	if c.status != "running" || !c.isOpenAt(at.Unix()) || !r.isOpenAt(at.Unix()) {
		j.addFault(&j.NotRunning, "contact %d of %s, which is %s, at %s", i, c.ID, c.status, at.UTC())
	}
	if r.onCall || n.active > 0 {
		j.addFault(&j.Doubled, "contact %d of %s is called while its number is on a call, at %s", i, c.ID, at.UTC())
	}
	if r.dials++; r.dials > c.Attempts || r.last != 0 && ms-r.last < 54_000 {
		j.addFault(&j.TooMany, "contact %d of %s: call %d, %d ms after the one before", i, c.ID, r.dials, ms-r.last)
	}
	j.pace(ms, i, c)
	r.onCall = true
	n.active++
	n.dials = append(n.dials, ms)
}

// isOpenAt reports whether the campaign has started and not ended.
func (c *campaign) isOpenAt(s int64) bool { return s >= c.StartsAt && (c.EndsAt == 0 || s < c.EndsAt) }

// isOpenAt reports whether the row may be called.
func (r *row) isOpenAt(s int64) bool { return s >= r.notBefore && (r.notAfter == 0 || s < r.notAfter) }

// hour counts a call in the earliest possible hour at the callee.
func (j *judge) hour(l *law, at time.Time, c *campaign, r *row) {
	_, zones := l.where(*r)
	hour := 24
	for _, name := range zones {
		hour = min(hour, at.In(l.zone(name)).Hour())
	}
	hours := j.ByHour[c.Market]
	hours[hour%24]++
	j.ByHour[c.Market] = hours
}

// outside describes a call outside the campaign's working hours, or outside the organization's window if the market
// applies it. It returns an empty string if the call is inside both.
func outside(l *law, at time.Time, c *campaign, r *row) string {
	zone := c.Timezone
	if c.ContactZone && r.timezone != "" {
		zone = r.timezone
	}
	local := at.In(l.zone(zone))
	hours := c.Hours[(int(local.Weekday())+6)%7]
	if hours[0] == "" || !within(local, hours[0]+"-"+hours[1]) {
		return fmt.Sprintf("%s %s is outside %v", local.Format("Mon 15:04:05"), zone, hours)
	}
	if local = at.In(l.zone(c.OrgZone)); l.windowBounds && !within(local, c.Window[0]+"-"+c.Window[1]) {
		return fmt.Sprintf("%s %s is outside the organization's window", local.Format("Mon 15:04:05"), c.OrgZone)
	}
	return ""
}

// overCaps describes the frequency caps that a call to a number exceeds.
func overCaps(l *law, at time.Time, c *campaign, r *row, n *number) (over []string) {
	states, zones := l.where(*r)
	check := func(kind, within string, most int) {
		if calls := countWithin(l, at, zones, within, n); calls >= most {
			over = append(over, fmt.Sprintf("%s: %d calls within %s, at most %d", kind, calls, within, most))
		}
	}
	for _, row := range l.caps {
		if !slices.Contains(states, row["state"]) || row["classification"] != c.Classification ||
			row["source"] != "law" && c.replaces(row["kind"]) {
			continue
		}
		if row["counts"] == "conversations" {
			if n.talkedWithin(at, row["within"]) {
				over = append(over, row["kind"])
			}
			continue
		}
		most, err := strconv.Atoi(row["most"])
		if err != nil {
			over = append(over, err.Error())
		}
		check(row["kind"], row["within"], most)
	}
	if c.Daily != nil && !c.CapsOff {
		within := "24h"
		if l.calendarDay {
			within = "day"
		}
		check("the organization's daily", within, *c.Daily)
	}
	return over
}

// talkedWithin reports whether there was a conversation within a time before at.
func (n *number) talkedWithin(at time.Time, within string) bool {
	d, err := time.ParseDuration(within)
	return err != nil || n.talked != 0 && at.Sub(time.UnixMilli(n.talked)) < d
}

// replaces reports whether the organization replaces or disables a cap of the market's
// policy.
func (c *campaign) replaces(kind string) bool { return c.CapsOff || kind == "daily" && c.Daily != nil }

// countWithin counts the calls of a number within a time before at, or on its calendar
// day.
func countWithin(l *law, at time.Time, zones []string, within string, n *number) (calls int) {
	if within == "day" {
		for _, name := range zones {
			today, same := at.In(l.zone(name)).Format(time.DateOnly), 0
			for k := len(n.dials) - 1; k >= 0 && at.UnixMilli()-n.dials[k] < 50*3600_000; k-- {
				if time.UnixMilli(n.dials[k]).In(l.zone(name)).Format(time.DateOnly) == today {
					same++
				}
			}
			calls = max(calls, same)
		}
		return calls
	}
	d, err := time.ParseDuration(within)
	if err != nil {
		return 1 << 30
	}
	for _, v := range slices.Backward(n.dials) {
		if at.Sub(time.UnixMilli(v)) >= d {
			break
		}
		calls++
	}
	return calls
}

// pace checks the calls of a campaign in the last second and minute. Up to two lost
// seconds may be made up for.
func (j *judge) pace(ms int64, i int, c *campaign) {
	c.dials = append(c.dials, ms)
	for len(c.dials) > 0 && ms-c.dials[0] >= 60_000 {
		c.dials = c.dials[1:]
	}
	second := 0
	for k := len(c.dials) - 1; k >= 0 && ms-c.dials[k] < 1000; k-- {
		second++
	}
	if len(c.dials) > c.PerMinute*62/60+1 || 60*second > max(2*c.PerMinute, 120) {
		j.addFault(&j.TooFast, "contact %d of %s: this is call %d within a minute and call %d within a second; the pace is %d calls a minute",
			i, c.ID, len(c.dials), second, c.PerMinute)
	}
}
