package campaigns

import "time"

// An Action is something that is asked of a campaign.
type Action uint8

// Actions.
const (
	Launch Action = iota
	Pause
	Resume
	Cancel
	AddCalls
)

// A Move is what an action does in a status.
type Move uint8

// Moves.
const (
	Impossible Move = iota // 409 campaign_transition_invalid; for AddCalls campaign_closed
	Already                // 200, nothing changes
	Checked                // it happens if the launch checks pass
	Happens
)

// Allowed tells what an action does to a campaign in a status.
func Allowed(s Status, a Action) Move {
	return map[Action]map[Status]Move{
		Launch:   {Draft: Checked, Scheduled: Already, Running: Already},
		Pause:    {Running: Happens, Paused: Already},
		Resume:   {Running: Already, Paused: Checked},
		Cancel:   {Draft: Happens, Scheduled: Happens, Running: Happens, Paused: Happens, Cancelled: Already},
		AddCalls: {Draft: Happens, Scheduled: Happens, Running: Happens, Paused: Happens},
	}[a][s]
}

// Live tells that a campaign was launched and is not over.
func (s Status) Live() bool { return s == Scheduled || s == Running || s == Paused }

// Due is the status that time alone brings a campaign to, with the reason where
// it is over by it. Reaching EndsAt closes whatever was launched.
func (c Campaign) Due(now time.Time) (Status, string) {
	switch {
	case c.Status.Live() && !c.EndsAt.IsZero() && !c.EndsAt.After(now):
		return Completed, EndsAtCame
	case c.Status == Scheduled && !c.StartsAt.After(now):
		return Running, ""
	default:
		return c.Status, c.StatusReason
	}
}
