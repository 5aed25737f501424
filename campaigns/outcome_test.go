package campaigns

import (
	"testing"
	"time"

	"github.com/parley-voice/parley/campaigns/retry"
)

func TestNextAfter(t *testing.T) {
	ended := time.Unix(1_800_000_000, 0).UTC()
	twice := retry.Config{Strategy: retry.Standard, Attempts: 2, Interval: 900}
	expert := retry.Config{Strategy: retry.Expert, Attempts: 2, Interval: 900, Rules: []retry.Rule{
		{On: []retry.Outcome{retry.Declined}, Action: "stop"}, {On: []retry.Outcome{retry.Answered}, Action: "redial"},
	}}
	for _, x := range []struct {
		name    string
		status  Status
		config  retry.Config
		dials   int
		outcome retry.Outcome
		want    State
	}{
		{"talked to", Running, twice, 1, retry.Answered, Done},
		{"not answered", Running, twice, 1, retry.NoAnswer, Pending},
		{"not answered, paused", Paused, twice, 1, retry.NoAnswer, Pending},
		{"not answered again", Running, twice, 2, retry.NoAnswer, Exhausted},
		{"no number", Running, twice, 1, retry.InvalidNumber, Exhausted},
		{"declined", Running, twice, 1, retry.Declined, Exhausted},
		{"not answered, campaign over", Completed, twice, 1, retry.NoAnswer, Exhausted},
		{"talked to, campaign over", Canceled, twice, 1, retry.Answered, Done},
		{"a rule stops", Running, expert, 1, retry.Declined, Done},
		{"a rule redials", Running, expert, 1, retry.Answered, Pending},
		{"a rule redials, no attempt left", Running, expert, 2, retry.Answered, Exhausted},
		{"no rule matches", Running, expert, 1, retry.Busy, Exhausted},
	} {
		got := Campaign{Status: x.status, Retry: x.config}.NextAfter(retry.History{Dials: x.dials, Outcome: x.outcome}, ended)
		if got.State != x.want || (got.State == Pending) == got.At.IsZero() {
			t.Errorf("%s: %+v, want %s", x.name, got, x.want)
		}
	}
}

func TestStatusAt(t *testing.T) {
	now := time.Unix(1_800_000_000, 0).UTC()
	early, late := now.Add(-time.Second), now.Add(time.Second)
	for _, x := range []struct {
		status       Status
		starts, ends time.Time
		want         Status
	}{
		{Draft, early, early, Draft},
		{Scheduled, late, time.Time{}, Scheduled},
		{Scheduled, now, late, Running},
		{Scheduled, early, now, Completed},
		{Running, time.Time{}, late, Running},
		{Running, time.Time{}, now, Completed},
		{Paused, time.Time{}, early, Completed},
		{Canceled, time.Time{}, early, Canceled},
		{Completed, time.Time{}, early, Completed},
	} {
		got, reason := Campaign{Status: x.status, StartsAt: x.starts, EndsAt: x.ends}.StatusAt(now)
		if got != x.want || (reason == EndsAtReached) != (got == Completed && x.status != Completed) {
			t.Errorf("%s from %v to %v becomes %s, %q", x.status, x.starts, x.ends, got, reason)
		}
	}
}
