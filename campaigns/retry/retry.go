// Package retry decides whether a contact is called again, and when. It is pure.
package retry

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// An Outcome is the result of one call to a contact.
type Outcome string

// Outcomes.
const (
	NoAnswer      Outcome = "no_answer"
	Busy          Outcome = "busy"
	Declined      Outcome = "declined"
	Voicemail     Outcome = "voicemail" // whether or not a message was left
	IVR           Outcome = "ivr"
	Failed        Outcome = "failed" // fault of the route, of Parley or of a provider
	Congestion    Outcome = "congestion"
	InvalidNumber Outcome = "invalid_number"
	Answered      Outcome = "answered"
	ShortCall     Outcome = "short_call" // answered, and ended within ten seconds
)

// Outcomes returns all outcomes.
func Outcomes() []Outcome {
	return []Outcome{NoAnswer, Busy, Declined, Voicemail, IVR, Failed, Congestion, InvalidNumber, Answered, ShortCall}
}

// IsConversation reports whether a person answered.
func (o Outcome) IsConversation() bool { return o == Answered || o == ShortCall }

// A Strategy selects how retries are decided.
type Strategy string

// Strategies.
const (
	Standard Strategy = "standard" // redials after growing delays; see delay
	Expert   Strategy = "expert"   // redials by the rules of the Config
)

// Bounds of a configuration; intervals are in seconds.
const (
	MaxAttempts = 10
	MinInterval = 60
	MaxInterval = 7 * 24 * 3600
	MaxRules    = 20

	defaultAttempts = 1
	defaultInterval = 900
)

// A Config is a campaign's retry_config.
type Config struct {
	Strategy Strategy `json:"-"`
	Attempts int      `json:"attempts"`   // largest number of calls, including the first
	Interval int      `json:"interval_s"` // first delay in seconds
	Rules    []Rule   `json:"rules,omitempty"`
}

// A Rule decides after calls with certain outcomes. The first rule that matches applies.
type Rule struct {
	On       []Outcome                  `json:"on"`
	When     map[string]json.RawMessage `json:"when,omitempty"` // required values by analysis.FIELD; all must match
	Action   string                     `json:"action"`         // redial or stop
	Interval int                        `json:"interval_s,omitempty"`
	At       string                     `json:"at,omitempty"`  // analysis.FIELD that has the epoch time of the redial
	Max      int                        `json:"max,omitempty"` // redials by this rule; 0 means no limit
}

// Actions.
const (
	redial = "redial"
	stop   = "stop"
)

// ErrConfig is returned for an invalid configuration.
var ErrConfig = errors.New("retry configuration")

// Parse reads a retry_config; empty means the default. The caller has validated the JSON types.
func Parse(strategy Strategy, raw json.RawMessage) (Config, error) {
	c := Config{Strategy: strategy, Attempts: defaultAttempts, Interval: defaultInterval}
	if strategy != Standard && strategy != Expert {
		return Config{}, fmt.Errorf("%w: call_strategy must be standard or expert, not %q", ErrConfig, strategy)
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
	case c.Attempts < 1 || c.Attempts > MaxAttempts:
		return fmt.Errorf("%w: attempts must be 1 to %d, not %d", ErrConfig, MaxAttempts, c.Attempts)
	case !isInterval(c.Interval):
		return fmt.Errorf("%w: interval_s must be %d to %d, not %d", ErrConfig, MinInterval, MaxInterval, c.Interval)
	case c.Strategy == Standard && len(c.Rules) > 0:
		return fmt.Errorf("%w: rules are accepted only with call_strategy expert", ErrConfig)
	case c.Strategy == Expert && len(c.Rules) == 0:
		return fmt.Errorf("%w: call_strategy expert requires rules", ErrConfig)
	case len(c.Rules) > MaxRules:
		return fmt.Errorf("%w: at most %d rules are accepted, not %d", ErrConfig, MaxRules, len(c.Rules))
	}
	for i, r := range c.Rules {
		if err := r.check(c.Attempts); err != nil {
			return fmt.Errorf("%w: rules[%d]: %w", ErrConfig, i, err)
		}
	}
	return nil
}

func isInterval(s int) bool { return s >= MinInterval && s <= MaxInterval }

func (r Rule) check(attempts int) error {
	if len(r.On) == 0 {
		return errors.New("on is empty: name at least one outcome")
	}
	for _, o := range r.On {
		if !slices.Contains(Outcomes(), o) {
			return fmt.Errorf("on: %q is not an outcome; accepted: %v", o, Outcomes())
		}
	}
	for field := range r.When {
		if !isField(field) {
			return fmt.Errorf("when: %q is not a field; use analysis.NAME", field)
		}
	}
	if r.Action == stop {
		if r.Interval != 0 || r.At != "" || r.Max != 0 {
			return errors.New("a rule with action stop accepts no interval_s, at or max")
		}
		return nil
	}
	return r.checkRedial(attempts)
}

func (r Rule) checkRedial(attempts int) error {
	switch {
	case r.Action != redial:
		return fmt.Errorf("action must be redial or stop, not %q", r.Action)
	case r.Interval != 0 && r.At != "":
		return errors.New("interval_s and at exclude each other")
	case r.Interval != 0 && !isInterval(r.Interval):
		return fmt.Errorf("interval_s must be %d to %d, not %d", MinInterval, MaxInterval, r.Interval)
	case r.At != "" && !isField(r.At):
		return fmt.Errorf("at must be a field like analysis.callback_at, not %q", r.At)
	case r.Max < 0 || r.Max > attempts:
		return fmt.Errorf("max must be 1 to attempts (%d), not %d", attempts, r.Max)
	default:
		return nil
	}
}

// isField reports whether a name is a field of the analysis.
func isField(name string) bool { return strings.HasPrefix(name, "analysis.") && name != "analysis." }

// Analyzes reports whether a rule depends on the analysis of a call.
func (c Config) Analyzes() bool {
	return slices.ContainsFunc(c.Rules, func(r Rule) bool { return len(r.When) > 0 || r.At != "" })
}

// A History is the past calls of a contact.
type History struct {
	Dials   int     // number of dials that count, including the last
	Outcome Outcome // outcome of the last dial
	// Uses counts the redials by rule index.
	Uses map[int]int
	// Analysis has the fields of the last call's analysis; nil without one.
	Analysis map[string]json.RawMessage
	// Spread, -1 to 1, shifts a delay by up to 10 %, so that contacts called together
	// are not called again together.
	Spread float64
}

// A Decision is the next step for a contact.
type Decision struct {
	Redial bool
	At     time.Time // time of a redial; legal calling hours may postpone it
	Rule   int       // index of the rule that decided; -1 for none
	// Stopped reports that a rule ends the retries, even if attempts are left.
	Stopped bool
}

// Next decides after a call that ended at the given time.
func (c Config) Next(t History, ended time.Time) Decision {
	if c.Strategy == Expert {
		return c.byRule(t, ended)
	}
	final := []Outcome{Answered, ShortCall, Declined, InvalidNumber}
	if t.Dials >= c.Attempts || slices.Contains(final, t.Outcome) {
		return Decision{Rule: -1}
	}
	return Decision{Redial: true, Rule: -1, At: ended.Add(applySpread(delay(c.Interval, t.Dials), t.Spread))}
}

// minRedialDelay is the shortest time between a call and a redial that the analysis requests.
const minRedialDelay = time.Minute

// byRule applies the first rule that matches and has redials left.
func (c Config) byRule(t History, ended time.Time) Decision {
	for i, r := range c.Rules {
		if !slices.Contains(r.On, t.Outcome) || !r.matches(t.Analysis) || r.Max > 0 && t.Uses[i] >= r.Max {
			continue
		}
		if r.Action == stop {
			return Decision{Rule: i, Stopped: true}
		}
		if t.Dials >= c.Attempts {
			return Decision{Rule: i}
		}
		seconds := cmp.Or(r.Interval, c.Interval)
		d := Decision{Redial: true, Rule: i, At: ended.Add(applySpread(time.Duration(seconds)*time.Second, t.Spread))}
		if r.At != "" {
			if at, ok := parseRedialTime(t.Analysis[strings.TrimPrefix(r.At, "analysis.")], ended); ok {
				if d.At = at; at.Before(ended.Add(minRedialDelay)) {
					d.At = ended.Add(minRedialDelay)
				}
			}
		}
		return d
	}
	return Decision{Rule: -1}
}

// matches reports whether the analysis has all values of the rule.
func (r Rule) matches(analysis map[string]json.RawMessage) bool {
	for field, want := range r.When {
		got, ok := analysis[strings.TrimPrefix(field, "analysis.")]
		if !ok || !equalJSON(got, want) {
			return false
		}
	}
	return true
}

// equalJSON reports whether two JSON values are equal, whatever their formatting.
func equalJSON(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	p, err1 := json.Marshal(x)
	q, err2 := json.Marshal(y)
	return err1 == nil && err2 == nil && string(p) == string(q)
}

// parseRedialTime reads the requested time of a redial. It must be in the future, at most
// MaxInterval seconds ahead.
func parseRedialTime(raw json.RawMessage, after time.Time) (time.Time, bool) {
	var epoch float64
	if json.Unmarshal(raw, &epoch) != nil || epoch < 0 || epoch > 1e11 {
		return time.Time{}, false
	}
	at := time.Unix(int64(epoch), 0).UTC()
	return at, at.After(after) && at.Before(after.Add(MaxInterval*time.Second))
}

// delay returns the delay after a number of dials: 1, 4, 16 and then 96 times the first delay. With 900 s these are
// 15 minutes, an hour, four hours and a day.
func delay(first, dials int) time.Duration {
	factor := []int{1, 4, 16, 96}[min(max(dials, 1), 4)-1]
	return time.Duration(first*factor) * time.Second
}

func applySpread(d time.Duration, by float64) time.Duration {
	return d + time.Duration(float64(d)*max(-1, min(by, 1))/10)
}
