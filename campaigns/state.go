package campaigns

import "time"

// An Action is an operation on a campaign.
type Action uint8

// Actions.
const (
	Launch Action = iota
	Pause
	Resume
	Cancel
	AddCalls
)

// An Effect is the effect of an action in a status.
type Effect uint8

// Effects.
const (
	Impossible   Effect = iota // 409 campaign_transition_invalid, or campaign_closed for AddCalls
	NoChange                   // 200 without a change
	IfChecksPass               // depends on the launch checks
	Applies
)

// EffectOf returns the effect of an action in a status.
func EffectOf(s Status, a Action) Effect {
	return map[Action]map[Status]Effect{
		Launch:   {Draft: IfChecksPass, Scheduled: NoChange, Running: NoChange},
		Pause:    {Running: Applies, Paused: NoChange},
		Resume:   {Running: NoChange, Paused: IfChecksPass},
		Cancel:   {Draft: Applies, Scheduled: Applies, Running: Applies, Paused: Applies, Canceled: NoChange},
		AddCalls: {Draft: Applies, Scheduled: Applies, Running: Applies, Paused: Applies},
	}[a][s]
}

// IsLive reports whether the campaign was launched and is not over.
func (s Status) IsLive() bool { return s == Scheduled || s == Running || s == Paused }

// StatusAt returns the status that follows from StartsAt and EndsAt at a time, and the reason if the campaign is
// over. EndsAt ends every launched campaign.
func (c Campaign) StatusAt(now time.Time) (Status, string) {
	switch {
	case c.Status.IsLive() && !c.EndsAt.IsZero() && !c.EndsAt.After(now):
		return Completed, EndsAtReached
	case c.Status == Scheduled && !c.StartsAt.After(now):
		return Running, ""
	default:
		return c.Status, c.StatusReason
	}
}
