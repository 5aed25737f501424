package campaigns

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/launchcheck"
	"github.com/parley-voice/parley/campaigns/progress"
	"github.com/parley-voice/parley/control"
)

func readTexts(t *testing.T) *ui.Texts {
	t.Helper()
	texts, err := ui.ReadTexts(nil)
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// TestFunnelBars checks that the bar of a step shows the share that its text says.
func TestFunnelBars(t *testing.T) {
	steps := funnel(readTexts(t), progress.Counters{Contacts: 400, Attempts: 240, InProgress: 40, Answered: 50}, 100, 40, 30, "cmp_1")
	for i, want := range []struct{ share, width string }{
		{"", "1000.0"}, {"25.0% of 400 contacts, 240 calls", "250.0"}, {"25.0% of 200 ended calls", "250.0"}, {"75.0% of 40 calls with a known result", "750.0"},
	} {
		if s := steps[i]; s.Share != want.share || !strings.Contains(string(s.Meter), `class="all" x="0" y="0" width="`+want.width+`"`) {
			t.Errorf("%s: %q, %s", s.Label, s.Share, s.Meter)
		}
	}
}

// TestExplain checks that the text names the reason why a campaign is not dialing.
func TestExplain(t *testing.T) {
	texts := readTexts(t)
	at := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		status   campaigns.Status
		p        progress.Progress
		blockers []launchcheck.Blocker
		state    string
		want     string
		next     time.Time
	}{
		{campaigns.Draft, progress.Progress{}, nil, "busy", "Draft. ", time.Time{}},
		{campaigns.Paused, progress.Progress{}, nil, "busy", "Paused: no new calls.", time.Time{}},
		{campaigns.Completed, progress.Progress{}, nil, "good", "Completed: ", time.Time{}},
		{campaigns.Running, progress.Progress{Ready: 3, Pace: progress.Pace{Dialed: 2, CallsPerMinute: 20}}, nil, "good", "Dialing: 2 calls in the last minute; requested pace 20", time.Time{}},
		{campaigns.Running, progress.Progress{Ready: 3}, nil, "due", "3 contacts ready. No calls in the last minute", time.Time{}},
		{campaigns.Running, progress.Progress{Ready: 3, Pace: progress.Pace{LimitedBy: []control.Code{control.CodeSubgroupConcurrency}}}, nil, "busy", "none being dialed: all channels of its subgroup are in use.", time.Time{}},
		{campaigns.Running, progress.Progress{Ready: 3}, []launchcheck.Blocker{{Code: launchcheck.AttestationRequired}, {Code: launchcheck.AgentNotPublished}}, "bad", "The agent is not published. Calls are on hold.", time.Time{}},
		{campaigns.Running, progress.Progress{Ready: 1}, []launchcheck.Blocker{{Code: launchcheck.AttestationRequired}}, "due", "1 contact ready", time.Time{}},
		{
			campaigns.Running,
			progress.Progress{Holds: 5, HeldReasons: map[string]int{"outside_legal_window": 4, "retry_wait": 1}, Next: at},
			nil,
			"busy", "for 2 reasons. Most common: outside legal hours at the contact’s location, 4 contacts.", at,
		},
		{campaigns.Running, progress.Progress{Holds: 2, HeldReasons: map[string]int{"retry_wait": 2}, Next: at.Add(time.Hour)}, nil, "busy", "Waiting for the next attempt: 2 contacts.", at.Add(time.Hour)},
		{campaigns.Running, progress.Progress{Holds: 2, HeldReasons: map[string]int{"route_unavailable": 2}}, nil, "bad", "Calls do not get through on the trunk", time.Time{}},
		{campaigns.Running, progress.Progress{Holds: 2, HeldReasons: map[string]int{"provider_unavailable": 2}}, nil, "bad", "A provider of the agent is not responding", time.Time{}},
		{campaigns.Running, progress.Progress{Holds: 2, HeldReasons: map[string]int{"too_many_failures": 2}}, nil, "bad", "A fault of Parley or a provider ended too many recent calls", time.Time{}},
		{campaigns.Running, progress.Progress{}, nil, "good", "All contacts were called.", time.Time{}},
	} {
		got := explain(texts, campaigns.Campaign{Status: c.status}, c.p, c.blockers)
		if got.State != c.state || !strings.Contains(got.Text, c.want) || !got.Next.Equal(c.next) {
			t.Errorf("%s: %+v, want %q %q %v", c.status, got, c.state, c.want, c.next)
		}
	}
}

// TestForecastText checks what the page says about the end of the calls.
func TestForecastText(t *testing.T) {
	texts := readTexts(t)
	now := time.Date(2026, 11, 26, 16, 0, 0, 0, time.UTC)
	york, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		x    progress.Forecast
		want string
	}{
		{progress.Forecast{At: now.Add(6*time.Hour + 38*time.Minute), PerMinute: 18.2}, "Expected end: about Thu 17:40, at the pace of the last hour of calls (18.2 per minute)."},
		{progress.Forecast{At: now.AddDate(0, 0, 34)}, "Expected end: about Wed 30 Dec 2026, at"},
		{progress.Forecast{At: now.AddDate(0, 0, 30), Later: true}, "Expected end: after Sat 26 Dec 2026, at"},
		{progress.Forecast{At: now.Add(45 * time.Minute), Missed: 150}, "About 150 contacts will not be called before the end, Thu 11:45, at"},
		{progress.Forecast{Why: progress.NoContacts}, ""},
		{progress.Forecast{Why: progress.NoPace}, "End not known: too few calls yet"},
		{progress.Forecast{Why: progress.Stalled}, "End not known: no call in the last 10 minutes."},
		{progress.Forecast{Why: "route_unavailable"}, "End not known: calls do not get through on the trunk."},
		{progress.Forecast{Why: string(control.CodeCampaignBudget)}, "End not known: the budget allows no further call."},
		{progress.Forecast{Why: string(control.CodeOrganizationLimit)}, "End not known: the organization reached its daily limit of ca"},
	} {
		if got := forecastText(texts, c.x, now, ui.Dates{Zone: york}); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%+v: %q, want %q", c.x, got, c.want)
		}
	}
}
