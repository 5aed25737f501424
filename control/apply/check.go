package apply

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/phonenumber"
)

var markets = []string{"us", "kz"} //nolint:gochecknoglobals // read-only

var clock = regexp.MustCompile(`^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$`)

// check validates the file without the database.
func (s Spec) check() error {
	if err := checkProviders("providers", s.Providers, maxProviders); err != nil {
		return err
	}
	var names []string
	for i, o := range s.Organizations {
		at := fmt.Sprintf("organizations[%d]", i)
		if err := checkName(at, o.Name, &names); err != nil {
			return err
		}
		if err := o.check(at); err != nil {
			return err
		}
	}
	return nil
}

// checkName returns an error if a name is empty or another object of the same kind has it.
func checkName(at, name string, others *[]string) error {
	if strings.TrimSpace(name) == "" {
		return fmt.Errorf("%s.name is missing", at)
	}
	if slices.Contains(*others, name) {
		return fmt.Errorf("%s.name: %q is used twice", at, name)
	}
	*others = append(*others, name)
	return nil
}

func (o Organization) check(at string) error {
	for _, check := range []func(string) error{
		o.checkSettings, o.checkDNC, o.checkRetention, o.checkSuppression, o.checkAgents, o.checkTrunks, o.checkGrants, o.checkProviders,
	} {
		if err := check(at); err != nil {
			return err
		}
	}
	return nil
}

func (o Organization) checkProviders(at string) error {
	return checkProviders(at+".providers", o.Providers, maxOrgProviders)
}

func (o Organization) checkSettings(at string) error {
	if o.Timezone != nil {
		if _, err := control.Zone(*o.Timezone); err != nil {
			return fmt.Errorf("%s.timezone: %w", at, err)
		}
	}
	if o.Market != nil && *o.Market != "" && !slices.Contains(markets, *o.Market) {
		return fmt.Errorf("%s.market: %q: use %s, or leave it out", at, *o.Market, strings.Join(markets, ", "))
	}
	if c := o.FrequencyCaps; c != nil && (c.Daily != nil && *c.Daily < 1 || c.Rolling7D != nil && *c.Rolling7D < 1) {
		return fmt.Errorf("%s.frequency_caps: caps are at least 1; to have none use enabled: false", at)
	}
	if err := o.Limits.check(at + ".limits"); err != nil {
		return err
	}
	return o.CallingWindow.check(at + ".calling_window")
}

func (l *OrgLimits) check(at string) error {
	switch {
	case l == nil:
		return nil
	case l.DailyCalls < 0 || l.DailyMinutes < 0:
		return fmt.Errorf("%s: limits are at least 1, or 0 for none", at)
	case !isCostLimit(l.DailyCost) || !isCostLimit(l.MonthlyCost):
		return fmt.Errorf("%s: cost limits are amounts up to 1000000000, or 0 for none", at)
	default:
		return nil
	}
}

// isCostLimit reports whether a cost limit in currency units is valid. Its billionths must fit into 64 bits.
func isCostLimit(units float64) bool { return units >= 0 && units <= 1e9 } // the result is false for NaN

func (o Organization) checkDNC(at string) error {
	if o.IndividualDNC != nil && !slices.Contains([]string{"enforce", "off"}, *o.IndividualDNC) {
		return fmt.Errorf("%s.individual_dnc: %q: use enforce or off", at, *o.IndividualDNC)
	}
	return nil
}

func (o Organization) checkRetention(at string) error {
	if o.Retention == nil {
		return nil
	}
	if err := o.Retention.Check(); err != nil {
		return fmt.Errorf("%s.retention.%w", at, err)
	}
	return nil
}

func (o Organization) checkSuppression(at string) error {
	if o.Suppression == nil {
		return nil
	}
	for i, n := range *o.Suppression {
		if d := phonenumber.SuppressionDigits(n); len(d) < 7 || len(d) > 20 {
			return fmt.Errorf("%s.suppression[%d]: %q is not a phone number", at, i, n)
		}
	}
	return nil
}

func (o Organization) checkAgents(at string) error {
	var names []string
	for i, a := range o.Agents {
		here := fmt.Sprintf("%s.agents[%d]", at, i)
		if err := checkName(here, a.Name, &names); err != nil {
			return err
		}
		if a.Voicemail != nil && !slices.Contains(agents.Voicemails(), *a.Voicemail) {
			return fmt.Errorf("%s.voicemail: %q: use %s", here, *a.Voicemail, strings.Join(agents.Voicemails(), ", "))
		}
	}
	return nil
}

func (o Organization) checkTrunks(at string) error {
	var names []string
	for i, t := range o.Trunks {
		here := fmt.Sprintf("%s.trunks[%d]", at, i)
		if err := checkName(here, t.Name, &names); err != nil {
			return err
		}
		var subgroups []string
		for j, s := range t.Subgroups {
			if err := checkName(fmt.Sprintf("%s.subgroups[%d]", here, j), s.Name, &subgroups); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o Organization) checkGrants(at string) error {
	if o.Grants != nil {
		var pairs []string
		for i, g := range *o.Grants {
			if g.Trunk == "" || g.To == "" {
				return fmt.Errorf("%s.grants[%d]: trunk and to are required", at, i)
			}
			if err := checkName(fmt.Sprintf("%s.grants[%d]", at, i), g.Trunk+" to "+g.To, &pairs); err != nil {
				return err
			}
		}
	}
	if o.GrantedTrunks == nil {
		return nil
	}
	var pairs []string
	for i, g := range *o.GrantedTrunks {
		here := fmt.Sprintf("%s.granted_trunks[%d]", at, i)
		if g.Trunk == "" || g.Of == "" {
			return fmt.Errorf("%s: trunk and of are required", here)
		}
		if err := checkName(here, g.Trunk+" of "+g.Of, &pairs); err != nil {
			return err
		}
		var subgroups []string
		for j, s := range g.Subgroups {
			if err := checkName(fmt.Sprintf("%s.subgroups[%d]", here, j), s.Name, &subgroups); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *Window) check(at string) error {
	if w == nil {
		return nil
	}
	if len(w.Days) == 0 || slices.ContainsFunc(w.Days, func(d int) bool { return d < 0 || d > 6 }) {
		return fmt.Errorf("%s.days: list days from 0 (Monday) to 6 (Sunday)", at)
	}
	if !clock.MatchString(w.Start) || !clock.MatchString(w.End) || w.Start >= w.End {
		return fmt.Errorf("%s: start and end are HH:MM, 00:00 to 24:00, and start is before end", at)
	}
	return nil
}
