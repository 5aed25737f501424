package campaigns

import (
	"html/template"
	"strconv"

	"github.com/parley-voice/parley/api/dashboard/chart"
	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/progress"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/pricing"
)

// budgetField asks for a budget; 0 means that there is none.
func budgetField(texts *ui.Texts, now pricing.Amount, currency string) ui.Field {
	f := ui.Field{
		Name: "budget", Label: texts.T("campaigns.budget.label"), Kind: ui.Number, Unit: currency, Optional: true, Min: "0",
		Help: texts.T("campaigns.budget.help"),
	}
	if now > 0 {
		f.Value = now.String()
	}
	return f
}

// readBudget reads a budget that is not empty.
func readBudget(texts *ui.Texts, text string) (*float64, error) {
	units, err := strconv.ParseFloat(text, 64)
	if err != nil || campaigns.CheckBudget(units) != nil {
		return nil, ui.Invalid("budget", texts.T("campaigns.budget.invalid"))
	}
	return &units, nil
}

// A budget is the use of a campaign's budget, as its page shows it.
type budget struct {
	Limit, Spent, InProgress, Left string
	Meter                          template.HTML
}

// budgetOf returns nil without a budget.
func budgetOf(texts *ui.Texts, p progress.Progress) *budget {
	b := p.Budget
	if b == nil {
		return nil
	}
	const parts = 1000
	used := b.Limit - b.Left
	if b.Left == 0 || used < 0 {
		used = b.Limit
	}
	text := texts.T("campaigns.budget.spent", "spent", formatCost(b.Spent), "limit", formatCost(b.Limit))
	return &budget{
		formatCost(b.Limit), formatCost(b.Spent), formatCost(b.InProgress), formatCost(b.Left),
		chart.Meter(text, int(float64(used)/float64(b.Limit)*parts), parts),
	}
}

// A cost is what the calls of a campaign cost, on its page.
type cost struct {
	Total string
	Each  string // per answered call; empty without such calls
}

func costOf(p progress.Progress) *cost {
	if p.Cost.Amount == 0 && p.Counters.Attempts == p.Counters.InProgress {
		return nil
	}
	c := &cost{Total: formatCost(p.Cost.Amount)}
	if each := p.Cost.PerAnswered; each != nil {
		c.Each = formatCost(*each)
	}
	return c
}

func formatCost(a pricing.Amount) string { return ui.Amount(a.Units()) }

func (c *Campaigns) askBudget(r *ui.Request) (ui.Page, error) {
	k, err := c.API.Store.Get(r.Context(), r.DB(), r.Org(), r.ID(), false)
	if err != nil {
		return ui.Page{}, err
	}
	return ui.Page{
		Template: "form.html", Title: r.Texts.T("campaigns.budget.title", "name", k.Name), Crumbs: crumbs(r.Texts, campaignLink(k)),
		Data: r.Form(ui.Form{
			Submit: r.Texts.T("ui.form.save"), Cancel: r.URL("campaigns/" + k.ID),
			Fields: []ui.Field{budgetField(r.Texts, k.Budget, c.Currency)},
		}),
	}, nil
}

func (c *Campaigns) setBudget(r *ui.Request) (ui.Result, error) {
	back := ui.Result{To: "campaigns/" + r.ID(), Notice: r.Texts.T("campaigns.budget.notice")}
	var units *float64
	if text := r.Text("budget"); text != "" {
		var err error
		if units, err = readBudget(r.Texts, text); err != nil {
			return back, err
		}
	}
	before, err := c.API.Store.Get(r.Context(), r.DB(), r.Org(), r.ID(), false)
	if err != nil {
		return back, err
	}
	st, err := c.service().SetBudget(r.Context(), r.Org(), r.ID(), who(r), units)
	if control.CodeOf(err) == control.CodeCampaignTransition {
		back.Notice, back.Failed = r.Texts.T("campaigns.change.refused", "reason", ui.ErrorText(err)), true
		return back, nil
	}
	if err != nil || st.Campaign.Budget == before.Budget {
		return back, err
	}
	return back, c.log(r, "budget", r.ID(), map[string]any{"budget": before.Budget}, map[string]any{"budget": st.Campaign.Budget})
}
