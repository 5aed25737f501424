package campaigns

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/checks"
	"github.com/parley-voice/parley/campaigns/progress"
	"github.com/parley-voice/parley/control"
)

// TestExplain: the answer to why a campaign is not dialling names what keeps it.
func TestExplain(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		status   campaigns.Status
		p        progress.Progress
		blockers []checks.Blocker
		state    string
		want     string
		next     time.Time
	}{
		{campaigns.Draft, progress.Progress{}, nil, "busy", "It is a draft", time.Time{}},
		{campaigns.Paused, progress.Progress{}, nil, "busy", "It is paused", time.Time{}},
		{campaigns.Completed, progress.Progress{}, nil, "good", "It is over", time.Time{}},
		{campaigns.Running, progress.Progress{Ready: 3, Pace: progress.Pace{Dialled: 2, CallsPerMinute: 20}}, nil, "good", "It is dialling: 2 calls in the last minute, of 20", time.Time{}},
		{campaigns.Running, progress.Progress{Ready: 3}, nil, "due", "3 contacts may be called now. None was called in the last minute", time.Time{}},
		{campaigns.Running, progress.Progress{Ready: 3, Pace: progress.Pace{LimitedBy: []control.Code{control.CodeSubgroupConcurrency}}}, nil, "busy", "and none is: all lines of its subgroup are in use.", time.Time{}},
		{campaigns.Running, progress.Progress{Ready: 3}, []checks.Blocker{{Code: checks.AttestationRequired}, {Code: checks.AgentNotPublished}}, "bad", "The agent is not published, so nobody is called.", time.Time{}},
		{campaigns.Running, progress.Progress{Ready: 1}, []checks.Blocker{{Code: checks.AttestationRequired}}, "due", "1 contact may be called now", time.Time{}},
		{
			campaigns.Running,
			progress.Progress{Holds: 5, HeldReasons: map[string]int{"outside_legal_window": 4, "retry_wait": 1}, Until: map[string]time.Time{"outside_legal_window": at}},
			nil,
			"busy", "for 2 reasons. The first: the law allows no call at this hour where they are, 4 contacts.", at,
		},
		{campaigns.Running, progress.Progress{Holds: 2, HeldReasons: map[string]int{"retry_wait": 2}, Until: map[string]time.Time{"retry_wait": at.Add(time.Hour)}}, nil, "busy", "They wait for the next attempt: 2 contacts.", at.Add(time.Hour)},
		{campaigns.Running, progress.Progress{Holds: 2, HeldReasons: map[string]int{"route_unavailable": 2}}, nil, "bad", "Calls do not get through the line", time.Time{}},
		{campaigns.Running, progress.Progress{}, nil, "busy", "Everybody was called.", time.Time{}},
	} {
		got := explain(campaigns.Campaign{Status: c.status}, c.p, c.blockers)
		if got.State != c.state || !strings.Contains(got.Says, c.want) || !got.Next.Equal(c.next) {
			t.Errorf("%s: %+v, want %q %q %v", c.status, got, c.state, c.want, c.next)
		}
	}
}
