package calls

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/overview"
	"github.com/parley-voice/parley/control/pricing"
	"github.com/parley-voice/parley/control/store"
)

type row struct {
	ID, Number, Name string
	Status           control.Status
	Web              bool
	Agent, Why       string
	CreatedAt        time.Time
	Took             time.Duration // duration of the conversation; 0 if there was none
	Over             bool
	Since            int64 // control.Call.Since in epoch seconds

	From, Campaign, Sentiment, Cost string
	Recorded                        bool
	Response                        float64 // p95 of the response times in ms; 0 without one
	Slowest                         int     // ms; 0 without response times
	Said                            *store.Excerpt
	store.Label
}

// rows returns calls as shown, with an excerpt of each if text is not empty.
func (c *Calls) rows(ctx context.Context, texts *ui.Texts, all []control.Call, text string) ([]row, error) {
	shown, ids := make([]row, len(all)), make([]string, len(all))
	for i, c := range all {
		shown[i], ids[i] = newRow(texts, c), c.ID
	}
	times, err := overview.ResponseTimes(ctx, c.Store.Pool, ids)
	if err != nil || len(ids) == 0 {
		return shown, err
	}
	labels, err := store.Labels(ctx, c.Store.Pool, ids)
	if err != nil {
		return shown, err
	}
	said := map[string]store.Excerpt{}
	if text != "" {
		if said, err = store.Excerpts(ctx, c.Store.Pool, ids, text); err != nil {
			return shown, err
		}
	}
	for i, id := range ids {
		shown[i].Response, shown[i].Slowest, shown[i].Label = times[id].P95, times[id].Slowest, labels[id]
		if e, ok := said[id]; ok {
			shown[i].Said = &e
		}
	}
	return shown, nil
}

// shownRows returns the rows of a list with some columns.
func (c *Calls) shownRows(r *ui.Request, columns []column, all []control.Call, text string) ([]row, error) {
	shown, err := c.rows(r.Context(), r.Texts, all, text)
	if err == nil && slices.ContainsFunc(columns, func(c column) bool { return c.Key == "campaign" }) {
		err = nameCampaigns(r, shown)
	}
	return shown, err
}

// nameCampaigns replaces the ids of campaigns by names. Deleted campaigns keep their id.
func nameCampaigns(r *ui.Request, all []row) error {
	groups := make([]overview.Group, len(all))
	for i, x := range all {
		groups[i].Campaign = x.Campaign
	}
	names, err := overview.Names(r.Context(), r.DB(), r.Org(), groups)
	for i, x := range all {
		all[i].Campaign = cmp.Or(names[x.Campaign], x.Campaign)
	}
	return err
}

func newRow(texts *ui.Texts, c control.Call) row {
	s := row{
		ID: c.ID, Number: ui.FormatNumber(c.To), Name: c.Name, Status: c.Status,
		Web: c.Type == control.Web, Agent: c.AgentName, CreatedAt: c.CreatedAt,
		Over: c.Status.Over(), Since: c.Since().Unix(),
		Campaign: c.CampaignID, Recorded: c.RecordingStatus == control.RecordingReady, Cost: shortCost(c.Cost),
	}
	if s.Web {
		s.Number = texts.T("calls.row.web_call")
	} else {
		s.From = ui.FormatNumber(c.From)
	}
	if c.Reason != "" {
		s.Why = texts.Label("ui.end_reason", string(c.Reason))
	}
	if !c.AnsweredAt.IsZero() && !c.EndedAt.IsZero() {
		s.Took = max(c.EndedAt.Sub(c.AnsweredAt), 0)
	}
	var found struct{ Sentiment string }
	if json.Unmarshal(c.Analysis, &found) == nil {
		s.Sentiment = found.Sentiment
	}
	return s
}

// Direction returns how the call came about.
func (s row) Direction() string {
	if s.Web {
		return "web"
	}
	return "outbound"
}

// shortCost returns the amount of a cost; empty if nothing was charged.
func shortCost(raw json.RawMessage) string {
	var c pricing.Cost
	if json.Unmarshal(raw, &c) != nil || c.Amount == 0 {
		return ""
	}
	return ui.Amount(c.Amount.Units()) + " " + c.Currency
}
