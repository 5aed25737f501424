package turn

import (
	"encoding/json"
	"fmt"
	"slices"
)

// An Opening is the first line of a turn log: the settings of the machine.
type Opening struct {
	Policy   Policy `json:"policy"`
	Greeting bool   `json:"greeting"`
}

// An Entry is any later line of a turn log: an event and its actions.
type Entry struct {
	Event   Event    `json:"event"`
	Actions []Action `json:"actions"`
}

// A Replay steps a machine through a log.
type Replay struct {
	machine *Machine
	lines   int
}

// Line replays the next line of the log. It returns an error for a line that is not part
// of a turn log, or if the machine's actions differ from the logged ones.
func (r *Replay) Line(b []byte) (e Entry, state State, err error) {
	r.lines++
	if r.machine == nil {
		var o Opening
		if err = json.Unmarshal(b, &o); err != nil || o.Policy == (Policy{}) {
			return e, "", fmt.Errorf("line %d: not the first line of a turn log: %w", r.lines, err)
		}
		r.machine = New(o.Policy, o.Greeting)
		r.machine.Start()
		return e, r.machine.State(), nil
	}
	if err = json.Unmarshal(b, &e); err != nil {
		return e, "", fmt.Errorf("line %d: not an event: %w", r.lines, err)
	}
	did := r.machine.Step(e.Event)
	if !slices.Equal(did, e.Actions) {
		return e, r.machine.State(), fmt.Errorf(
			"line %d: %s at %v: got %+v, logged %+v", r.lines, e.Event.Kind, e.Event.At, did, e.Actions,
		)
	}
	return e, r.machine.State(), nil
}
