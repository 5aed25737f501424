package campaigns

import (
	"cmp"
	"context"
	"time"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/campaigns/dnc/screening"
	"github.com/parley-voice/parley/campaigns/progress"
)

// An Idle is a running campaign that placed no call in the last minute.
type Idle struct {
	ID, Name string
	State    string // CSS class of the reason: due, busy or bad
	Reason   string
	Next     time.Time // earliest next call; zero if unknown
}

// maxIdle limits the campaigns whose reasons a page shows. After idleTime the page reads no further reason. reasonTime limits
// the reading of one.
const (
	maxIdle    = 20
	idleTime   = 60 * time.Millisecond
	reasonTime = 500 * time.Millisecond
)

// FindIdle returns the idle campaigns of the organization with the reason of each, the newest first. It returns those of ids,
// or of all campaigns if ids is nil. A reason that cannot be read is missing; the page must not fail for it.
func FindIdle(c *Campaigns, r *ui.Request, ids []string) ([]Idle, error) {
	found, err := c.API.Store.Idle(r.Context(), r.DB(), r.Org(), ids, maxIdle)
	var all []Idle
	began := time.Now()
	for _, k := range found {
		x := Idle{ID: k.ID, Name: k.Name, State: "due", Reason: r.Texts.T("campaigns.idle.reason_not_read")}
		if time.Since(began) < idleTime && explainIdle(c, r, &x) == nil && x.State == "good" {
			continue
		}
		all = append(all, x)
	}
	return all, err
}

// explainIdle sets why a campaign does not dial.
func explainIdle(c *Campaigns, r *ui.Request, x *Idle) error {
	ctx, cancel := context.WithTimeout(r.Context(), reasonTime)
	defer cancel()
	st, err := c.service().Get(ctx, r.Org(), x.ID, screening.Cached)
	if err != nil {
		return err
	}
	facts, err := c.service().ProgressFacts(ctx, r.Org(), x.ID, true)
	if err != nil {
		return err
	}
	w := explain(r.Texts, st.Campaign, progress.Compute(facts), st.Blockers)
	x.State, x.Reason, x.Next = cmp.Or(w.State, "busy"), w.Text, w.Next
	if w.Action != "" {
		x.Reason += " " + w.Action
	}
	return nil
}
