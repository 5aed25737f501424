package overview

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/media"
)

// An Outcome is the result of an ended call, as statistics count it. The numbers are stored.
type Outcome int

// Outcomes. Every ended call has one.
const (
	Answered  Outcome = iota // a person answered
	Machine                  // voicemail, a phone menu or a fax answered
	NoAnswer                 // it rang and was not answered
	Busy                     // the line was busy
	Refused                  // declined, blocked, or the number does not exist
	Faulted                  // dialed, and failed for another reason
	NotDialed                // ended before it was dialed
	Outcomes                 // number of outcomes
)

// outcomeOf returns the outcome of an ended call.
func outcomeOf(answered, dialed bool, answeredBy string, reason control.Reason) Outcome {
	switch {
	case answered && (answeredBy == "voicemail" || answeredBy == "ivr" || answeredBy == "fax"):
		return Machine
	case answered:
		return Answered
	case !dialed:
		return NotDialed
	}
	switch media.Cause(reason) {
	case media.NoAnswer:
		return NoAnswer
	case media.Busy:
		return Busy
	case media.Declined, media.Blocked, media.InvalidNumber:
		return Refused
	default:
		return Faulted
	}
}

// key identifies a rollup: statistics of the calls of an hour.
type key struct {
	org             string
	hour            time.Time
	agent, campaign string
}

// A stat is what a call adds to its rollup.
type stat struct {
	outcome    Outcome
	successful *bool // nil: unknown
	talk       int64 // ms
	cost       *int64
	cell       *int // hour of the callee's week; nil: not dialed
	times      []byte
	slowest    int // longest response time in ms, at least 1; 0 without response times
}

// equal reports whether two calls add the same to a rollup.
func (s stat) equal(o stat) bool {
	return s.outcome == o.outcome && s.talk == o.talk && same(s.successful, o.successful) && same(s.cost, o.cost) && same(s.cell, o.cell) &&
		bytes.Equal(s.times, o.times)
}

func same[T comparable](a, b *T) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// facts are what the database has about a call.
type facts struct {
	key

	id                         string
	created                    time.Time
	counts                     bool // the call exists, has ended, and is not erased
	dialed, answered, ended    *time.Time
	callType, answeredBy       string
	reason                     control.Reason
	successful                 *bool
	cost                       *int64
	number, zone, organization string // zone is that of the contact; organization is the organization's
	turns                      []string
	pack                       []byte
	rollup                     *int64 // the rollup that counts the call; nil if none does
	before                     stat   // what it counts
}

// evaluate returns what a call adds. Success and response times stay after the retention period of the transcript. The error
// says why the turns cannot be read; the call then adds no response times.
func (f *facts) evaluate(locate func(digits string) string) (stat, error) {
	if !f.counts {
		return stat{}, nil
	}
	h, slowest, err := responseTimes(f.turns, f.pack)
	if err != nil {
		h, slowest, err = Histogram{}, 0, fmt.Errorf("call %s: %w", f.id, err)
	}
	dialed := f.dialed
	if f.callType == control.Web {
		dialed = f.answered
	}
	s := stat{
		outcome:    outcomeOf(f.answered != nil, dialed != nil, f.answeredBy, f.reason),
		successful: f.successful, cost: f.cost, times: h.encode(), slowest: slowest,
	}
	if f.answered != nil && f.ended != nil {
		s.talk = max(f.ended.Sub(*f.answered).Milliseconds(), 0)
	}
	if s.outcome != NotDialed && f.callType != control.Web {
		s.cell = new(weekHour(*cmp.Or(f.dialed, f.answered), f.place(locate)))
	}
	if s.successful == nil {
		s.successful = f.before.successful
	}
	if len(s.times) == 0 && len(f.before.times) > 0 {
		s.times, s.slowest = f.before.times, cmp.Or(f.before.slowest, slowestOf(f.before.times))
	}
	return s, err
}

// slowestOf estimates the longest of encoded response times, whose exact value is not stored.
func slowestOf(times []byte) int {
	var h Histogram
	_ = h.merge(times, 1) // of damaged times the readable part
	ms, _ := h.Percentile(1)
	return wholeMS(ms)
}

// wholeMS rounds a response time to at least 1 ms.
func wholeMS(ms float64) int { return max(1, int(math.Round(ms))) }

// place returns the time zone of the callee: that of the contact, of the number, or of the organization.
func (f *facts) place(locate func(digits string) string) *time.Location {
	names := []string{f.zone, "", f.organization}
	if locate != nil && f.zone == "" {
		names[1] = locate(f.number)
	}
	for _, name := range names {
		if zone, err := control.Zone(name); name != "" && err == nil {
			return zone
		}
	}
	return time.UTC
}

func weekHour(t time.Time, zone *time.Location) int {
	local := t.In(zone)
	return 24*int(local.Weekday()) + local.Hour()
}

// responseTimes returns the response times of a call, whose turns are JSON texts or in a pack, and the longest of them;
// 0 without any. The greeting does not count.
func responseTimes(turns []string, pack []byte) (h Histogram, slowest int, err error) {
	var s agentTurns
	if err = s.add(turns, pack); err != nil {
		return h, 0, err
	}
	for _, ms := range s.times {
		h.Add(ms)
		slowest = max(slowest, wholeMS(ms))
	}
	return h, slowest, nil
}

// Sums are statistics of calls.
type Sums struct {
	Calls                    int
	Outcomes                 [Outcomes]int
	KnownSuccess, Successful int // calls whose analysis says whether they succeeded; those that did
	TalkMS                   int64
	Costed                   int   // calls with a known cost
	CostNano                 int64 // in billionths of the currency
	Times                    Histogram
	Week                     Week
}

// errNegative means that statistics count less than what is taken away from them.
var errNegative = errors.New("statistics would become negative")

// add adds a call; a negative sign takes it away.
func (s *Sums) add(c stat, sign int) error {
	s.Calls += sign
	s.Outcomes[c.outcome] += sign
	s.TalkMS += int64(sign) * c.talk
	if c.successful != nil {
		s.KnownSuccess += sign
		if *c.successful {
			s.Successful += sign
		}
	}
	if c.cost != nil {
		s.Costed += sign
		s.CostNano += int64(sign) * *c.cost
	}
	if c.cell != nil {
		s.Week[*c.cell].Dialed += sign
		if c.outcome == Answered {
			s.Week[*c.cell].Answered += sign
		}
	}
	return s.Times.merge(c.times, sign)
}

// decode adds encoded statistics.
func (s *Sums) decode(times, week []byte) error {
	if err := s.Times.merge(times, 1); err != nil {
		return err
	}
	return s.Week.merge(week)
}

// check returns errNegative if a count is negative.
func (s *Sums) check() error {
	least := min(s.Calls, s.KnownSuccess, s.Successful, int(s.TalkMS), s.Costed)
	for _, n := range s.Outcomes {
		least = min(least, n)
	}
	for _, n := range s.Times {
		least = min(least, n)
	}
	for _, c := range s.Week {
		least = min(least, c.Dialed, c.Answered)
	}
	if least < 0 {
		return errNegative
	}
	return nil
}

// Dialed returns the number of calls that were dialed.
func (s *Sums) Dialed() int { return s.Calls - s.Outcomes[NotDialed] }

// Merge adds the statistics of other calls.
func (s *Sums) Merge(o *Sums) {
	s.Calls += o.Calls
	for i, n := range o.Outcomes {
		s.Outcomes[i] += n
	}
	s.KnownSuccess += o.KnownSuccess
	s.Successful += o.Successful
	s.TalkMS += o.TalkMS
	s.Costed += o.Costed
	s.CostNano += o.CostNano
	for i, n := range o.Times {
		s.Times[i] += n
	}
	for i, c := range o.Week {
		s.Week[i].Dialed += c.Dialed
		s.Week[i].Answered += c.Answered
	}
}
