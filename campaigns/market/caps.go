package market

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Kinds of caps.
const (
	CapDaily            = "daily"
	CapRolling7d        = "rolling_7d"
	CapState            = "state_24h"
	CapPostConversation = "post_conversation_7d"
	CapMinGap           = "min_gap"
)

// Sources of caps.
const (
	FromLaw          = "law"
	FromMarket       = "market_default"
	FromOrganization = "organization"
)

// A Cap bounds the calls to a number.
type Cap struct {
	Kind string
	// Most is the largest number of dialed attempts in Within. For a cap after conversations it is
	// 0: no call until Within has passed.
	Most   int
	Within time.Duration
	// If CalendarDay is true, Within means the callee's calendar day, not a rolling window.
	CalendarDay bool
	Source      string
	Rule        string // the statute
}

type capRow struct {
	state string
	class Classification
	Cap
}

func (p *Package) addCap(r row) error {
	c := capRow{state: r["state"], class: Classification(r["classification"])}
	if !slices.Contains(Classifications(), c.class) {
		return fmt.Errorf("classification %q: use one of %v", c.class, Classifications())
	}
	c.Kind, c.Source, c.Rule = r["kind"], r["source"], r["citation"]
	if !slices.Contains([]string{CapDaily, CapRolling7d, CapState, CapPostConversation, CapMinGap}, c.Kind) {
		return fmt.Errorf("kind %q is not known", c.Kind)
	}
	if (c.Kind == CapPostConversation) != (r["counts"] == "conversations") {
		return fmt.Errorf("a cap of kind %s cannot count %s", c.Kind, r["counts"])
	}
	if c.Source != FromLaw && c.Source != FromMarket {
		return fmt.Errorf("source %q: use %s or %s", c.Source, FromLaw, FromMarket)
	}
	var err error
	if c.Most, err = strconv.Atoi(r["most"]); err != nil || c.Most < 0 {
		return fmt.Errorf("most %q is not a number of calls", r["most"])
	}
	if r["within"] == "day" {
		c.CalendarDay, c.Within = true, 24*time.Hour
	} else if c.Within, err = time.ParseDuration(r["within"]); err != nil || c.Within <= 0 {
		return fmt.Errorf("within %q: write a duration (24h), or day", r["within"])
	}
	p.caps = append(p.caps, c)
	return nil
}

// Caps returns the caps of the law and of the market's own policy for calls to a location. Of several caps of the
// same source, kind and length it returns the strictest. An organization may replace caps with source FromMarket, so they
// do not stand in for caps of the law.
func (p *Package) Caps(place Location, class Classification) []Cap {
	var all []Cap
	for _, c := range p.caps {
		if c.class != class || c.state != p.Region && !slices.Contains(place.States, c.state) {
			continue
		}
		at := slices.IndexFunc(all, func(x Cap) bool {
			return x.Source == c.Source && x.Kind == c.Kind && x.Within == c.Within && x.CalendarDay == c.CalendarDay
		})
		switch {
		case at < 0:
			all = append(all, c.Cap)
		case c.Most < all[at].Most:
			all[at] = c.Cap
		}
	}
	return all
}

// CountsByCalendarDay reports whether the daily cap counts by the callee's calendar
// day, not by 24 hours.
func (p *Package) CountsByCalendarDay() bool {
	return slices.ContainsFunc(p.caps, func(c capRow) bool { return c.Kind == CapDaily && c.CalendarDay })
}
