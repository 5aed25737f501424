package turn

import (
	"encoding/json"
	"fmt"
	"slices"
)

// An Opening is the first line of a turn log: how the machine was set.
type Opening struct {
	Policy   Policy `json:"policy"`
	Greeting bool   `json:"greeting"`
}

// An Entry is any other line: what happened, and what the machine did.
type Entry struct {
	Event   Event    `json:"event"`
	Actions []Action `json:"actions"`
}

// A Replay steps a machine through a log.
type Replay struct {
	machine *Machine
	lines   int
}

// Line takes the next line of the log. The error says where it is no log, or
// where the machine does something else now than it did then.
func (r *Replay) Line(b []byte) (e Entry, state State, err error) {
	r.lines++
	if r.machine == nil {
		var o Opening
		if err = json.Unmarshal(b, &o); err != nil || o.Policy == (Policy{}) {
			return e, "", fmt.Errorf("line %d: not the beginning of a turn log: %w", r.lines, err)
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
		return e, r.machine.State(), fmt.Errorf("line %d: %s at %v did %+v then and does %+v now", r.lines, e.Event.Kind, e.Event.At, e.Actions, did)
	}
	return e, r.machine.State(), nil
}
