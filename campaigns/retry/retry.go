// Package retry decides whether a contact is called again, and when. It is
// pure.
package retry

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// An Outcome is what came of one call to a contact.
type Outcome string

// Outcomes.
const (
	NoAnswer      Outcome = "no_answer"
	Busy          Outcome = "busy"
	Declined      Outcome = "declined"
	Voicemail     Outcome = "voicemail" // whether a message was left or not
	IVR           Outcome = "ivr"
	Failed        Outcome = "failed" // the route's fault, or ours
	Congestion    Outcome = "congestion"
	InvalidNumber Outcome = "invalid_number"
	Answered      Outcome = "answered"
	ShortCall     Outcome = "short_call" // answered, and over within ten seconds
)

// Outcomes lists all.
func Outcomes() []Outcome {
	return []Outcome{NoAnswer, Busy, Declined, Voicemail, IVR, Failed, Congestion, InvalidNumber, Answered, ShortCall}
}

// Conversation tells whether somebody was talked to.
func (o Outcome) Conversation() bool { return o == Answered || o == ShortCall }

// A Strategy says who decides.
type Strategy string

// Strategies.
const (
	Standard Strategy = "standard" // a fixed ladder of delays
	Expert   Strategy = "expert"   // rules
)

// Bounds of a configuration.
const (
	MostAttempts    = 10
	ShortestSeconds = 60
	LongestSeconds  = 7 * 24 * 3600
	MostRules       = 20

	usualAttempts = 1
	usualSeconds  = 900
)

// A Config is a campaign's retry_config.
type Config struct {
	Strategy Strategy `json:"-"`
	Attempts int      `json:"attempts"`   // dials of a contact, the first among them
	Interval int      `json:"interval_s"` // seconds: the first rung of the ladder
	Rules    []Rule   `json:"rules,omitempty"`
}

// A Rule is what to do after some outcomes. The first that fits counts.
type Rule struct {
	On       []Outcome                  `json:"on"`
	When     map[string]json.RawMessage `json:"when,omitempty"` // analysis.FIELD: value; all must hold
	Action   string                     `json:"action"`         // redial or stop
	Interval int                        `json:"interval_s,omitempty"`
	At       string                     `json:"at,omitempty"`  // analysis.FIELD, an epoch: when to redial
	Max      int                        `json:"max,omitempty"` // redials by this rule, 0 any
}

// Actions.
const (
	redial = "redial"
	stop   = "stop"
)

// ErrConfig tells what of a configuration cannot be.
var ErrConfig = errors.New("retry configuration")

// Parse reads a retry_config, empty for none. Numbers of a wrong kind are the
// caller's to refuse before.
func Parse(strategy Strategy, raw json.RawMessage) (Config, error) {
	c := Config{Strategy: strategy, Attempts: usualAttempts, Interval: usualSeconds}
	if strategy != Standard && strategy != Expert {
		return Config{}, fmt.Errorf("%w: call_strategy is standard or expert, not %q", ErrConfig, strategy)
	}
	if len(raw) > 0 && string(raw) != "null" {
		var given struct {
			Attempts *int              `json:"attempts"`
			Interval *int              `json:"interval_s"`
			Rules    []json.RawMessage `json:"rules"`
		}
		if err := json.Unmarshal(raw, &given); err != nil {
			return Config{}, fmt.Errorf("%w: %w", ErrConfig, err)
		}
		if given.Attempts != nil {
			c.Attempts = *given.Attempts
		}
		if given.Interval != nil {
			c.Interval = *given.Interval
		}
		for i, text := range given.Rules {
			r, err := parseRule(text)
			if err != nil {
				return Config{}, fmt.Errorf("%w: rules[%d]: %w", ErrConfig, i, err)
			}
			c.Rules = append(c.Rules, r)
		}
	}
	return c, c.check()
}

func parseRule(text json.RawMessage) (Rule, error) {
	var r Rule
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return Rule{}, err
	}
	return r, nil
}

func (c Config) check() error {
	switch {
	case c.Attempts < 1 || c.Attempts > MostAttempts:
		return fmt.Errorf("%w: attempts is 1 to %d, not %d", ErrConfig, MostAttempts, c.Attempts)
	case !interval(c.Interval):
		return fmt.Errorf("%w: interval_s is %d to %d, not %d", ErrConfig, ShortestSeconds, LongestSeconds, c.Interval)
	case c.Strategy == Standard && len(c.Rules) > 0:
		return fmt.Errorf("%w: rules go with the call_strategy expert", ErrConfig)
	case c.Strategy == Expert && len(c.Rules) == 0:
		return fmt.Errorf("%w: the call_strategy expert needs rules", ErrConfig)
	case len(c.Rules) > MostRules:
		return fmt.Errorf("%w: at most %d rules, not %d", ErrConfig, MostRules, len(c.Rules))
	}
	for i, r := range c.Rules {
		if err := r.check(c.Attempts); err != nil {
			return fmt.Errorf("%w: rules[%d]: %w", ErrConfig, i, err)
		}
	}
	return nil
}

func interval(s int) bool { return s >= ShortestSeconds && s <= LongestSeconds }

func (r Rule) check(attempts int) error {
	if len(r.On) == 0 {
		return errors.New("on names no outcome")
	}
	for _, o := range r.On {
		if !slices.Contains(Outcomes(), o) {
			return fmt.Errorf("on: %q is no outcome; there are %v", o, Outcomes())
		}
	}
	for field := range r.When {
		if !isField(field) {
			return fmt.Errorf("when: %q is no field: write analysis. and its name", field)
		}
	}
	if r.Action == stop {
		if r.Interval != 0 || r.At != "" || r.Max != 0 {
			return errors.New("a rule that stops has no interval_s, at or max")
		}
		return nil
	}
	return r.checkRedial(attempts)
}

func (r Rule) checkRedial(attempts int) error {
	switch {
	case r.Action != redial:
		return fmt.Errorf("action is redial or stop, not %q", r.Action)
	case r.Interval != 0 && r.At != "":
		return errors.New("interval_s and at exclude each other")
	case r.Interval != 0 && !interval(r.Interval):
		return fmt.Errorf("interval_s is %d to %d, not %d", ShortestSeconds, LongestSeconds, r.Interval)
	case r.At != "" && !isField(r.At):
		return fmt.Errorf("at is a field like analysis.callback_at, not %q", r.At)
	case r.Max < 0 || r.Max > attempts:
		return fmt.Errorf("max is 1 to attempts (%d), not %d", attempts, r.Max)
	default:
		return nil
	}
}

// isField tells whether a name is that of a field of the analysis.
func isField(name string) bool { return strings.HasPrefix(name, "analysis.") && name != "analysis." }

// Analyzes tells whether a rule asks what a call's analysis says.
func (c Config) Analyzes() bool {
	return slices.ContainsFunc(c.Rules, func(r Rule) bool { return len(r.When) > 0 || r.At != "" })
}

// A Tried is what became of a contact so far.
type Tried struct {
	Dials   int     // that count, the last among them
	Outcome Outcome // of the last
	// Uses is how many redials each rule has brought, by its place.
	Uses map[int]int
	// Analysis are the fields of the last call's analysis, nil where there is none.
	Analysis map[string]json.RawMessage
	// Spread, -1 to 1, moves a delay by up to a tenth, so that those who were
	// called together are not called together again.
	Spread float64
}

// A Decision is what comes next.
type Decision struct {
	Redial bool
	At     time.Time // of a redial, before legal windows move it
	Rule   int       // the rule's place, -1 where none decided
	// Stopped tells that a rule wants no more, whatever is left.
	Stopped bool
}

// Next decides after a call that ended at an instant.
func (c Config) Next(t Tried, ended time.Time) Decision {
	if c.Strategy == Expert {
		return c.byRule(t, ended)
	}
	final := []Outcome{Answered, ShortCall, Declined, InvalidNumber}
	if t.Dials >= c.Attempts || slices.Contains(final, t.Outcome) {
		return Decision{Rule: -1}
	}
	return Decision{Redial: true, Rule: -1, At: ended.Add(spread(ladder(c.Interval, t.Dials), t.Spread))}
}

// soonest is how soon after a call its contact may be called again, whatever an
// analysis says that was asked for.
const soonest = time.Minute

// byRule finds the first rule that fits. A rule that has brought all its
// redials is passed over.
func (c Config) byRule(t Tried, ended time.Time) Decision {
	for i, r := range c.Rules {
		if !slices.Contains(r.On, t.Outcome) || !r.holds(t.Analysis) || r.Max > 0 && t.Uses[i] >= r.Max {
			continue
		}
		if r.Action == stop {
			return Decision{Rule: i, Stopped: true}
		}
		if t.Dials >= c.Attempts {
			return Decision{Rule: i}
		}
		seconds := r.Interval
		if seconds == 0 {
			seconds = c.Interval
		}
		d := Decision{Redial: true, Rule: i, At: ended.Add(spread(time.Duration(seconds)*time.Second, t.Spread))}
		if r.At != "" {
			if at, ok := instant(t.Analysis[strings.TrimPrefix(r.At, "analysis.")], ended); ok {
				if d.At = at; at.Before(ended.Add(soonest)) {
					d.At = ended.Add(soonest)
				}
			}
		}
		return d
	}
	return Decision{Rule: -1}
}

// holds tells whether an analysis has all values that the rule asks for.
func (r Rule) holds(analysis map[string]json.RawMessage) bool {
	for field, want := range r.When {
		got, ok := analysis[strings.TrimPrefix(field, "analysis.")]
		if !ok || !same(got, want) {
			return false
		}
	}
	return true
}

// same tells whether two JSON values are equal, however they are written.
func same(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	p, err1 := json.Marshal(x)
	q, err2 := json.Marshal(y)
	return err1 == nil && err2 == nil && string(p) == string(q)
}

// instant reads a time that an analysis names, where it is one of the future
// that a redial may wait for.
func instant(raw json.RawMessage, after time.Time) (time.Time, bool) {
	var epoch float64
	if json.Unmarshal(raw, &epoch) != nil || epoch < 0 || epoch > 1e11 {
		return time.Time{}, false
	}
	at := time.Unix(int64(epoch), 0).UTC()
	return at, at.After(after) && at.Before(after.Add(LongestSeconds*time.Second))
}

// ladder is the delay after so many dials: 1, 4, 16 and from then on 96 times
// the first rung. At 900 s: 15 minutes, an hour, four hours, a day.
func ladder(first, dials int) time.Duration {
	rung := []int{1, 4, 16, 96}[min(max(dials, 1), 4)-1]
	return time.Duration(first*rung) * time.Second
}

func spread(d time.Duration, by float64) time.Duration {
	return d + time.Duration(float64(d)*max(-1, min(by, 1))/10)
}
