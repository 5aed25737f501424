package service

import (
	"context"
	"slices"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
)

// MaxRunning is the number of running campaigns that PauseAll reads at a time.
const MaxRunning = 500

// pauseRounds limits how often PauseAll looks for newly launched campaigns.
const pauseRounds = 4

// A PauseAllResult is what PauseAll did.
type PauseAllResult struct {
	Paused []campaigns.Campaign
	Failed []PauseFailure
	Left   []campaigns.Campaign // launched in between and still running
}

// A PauseFailure is a campaign that could not be paused.
type PauseFailure struct {
	Campaign campaigns.Campaign
	Err      error
}

// WithStatus returns the newest campaigns of an organization with a status, at most MaxRunning.
func WithStatus(ctx context.Context, from *store.Store, orgID string, status campaigns.Status) ([]campaigns.Campaign, error) {
	all, _, err := from.List(ctx, store.Filter{OrgID: orgID, Status: []string{string(status)}, Limit: MaxRunning})
	return all, err
}

// PauseAll pauses the running campaigns of an organization one by one, so that a failure concerns one campaign. Then it
// looks for newly launched campaigns. Active calls continue.
func PauseAll(ctx context.Context, svc *Service, orgID string, who Actor) (r PauseAllResult, err error) {
	tried := map[string]bool{}
	for range pauseRounds {
		running, fault := WithStatus(ctx, svc.Store, orgID, campaigns.Running)
		if fault != nil {
			return r, fault
		}
		running = slices.DeleteFunc(running, func(c campaigns.Campaign) bool { return tried[c.ID] })
		if r.Left = running; len(running) == 0 {
			return r, nil
		}
		for _, c := range running {
			tried[c.ID] = true
			_, fault = svc.Pause(ctx, orgID, c.ID, who)
			switch {
			case fault == nil:
				r.Paused = append(r.Paused, c)
			case control.CodeOf(fault) == control.CodeCampaignTransition: // it has ended
			default:
				r.Failed = append(r.Failed, PauseFailure{c, fault})
			}
		}
	}
	left, err := WithStatus(ctx, svc.Store, orgID, campaigns.Running)
	r.Left = slices.DeleteFunc(left, func(c campaigns.Campaign) bool { return tried[c.ID] })
	return r, err
}
