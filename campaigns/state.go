package campaigns

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
