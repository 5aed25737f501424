package calls

import (
	"time"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control"
)

type row struct {
	ID, Number, Name string
	Status           control.Status
	Web              bool
	Agent, Why       string
	CreatedAt        time.Time
	Took             time.Duration // duration of the conversation; 0 if there was none
	Over             bool
	Since            int64 // start of the call in epoch seconds
}

func rows(all []control.Call) []row {
	shown := make([]row, len(all))
	for i, c := range all {
		shown[i] = show(c)
	}
	return shown
}

func show(c control.Call) row {
	s := row{
		ID: c.ID, Number: ui.FormatNumber(c.To), Name: c.Name, Status: c.Status,
		Web: c.Type == control.Web, Agent: c.AgentName, CreatedAt: c.CreatedAt,
		Over: c.Status.Over(), Since: c.CreatedAt.Unix(),
	}
	if s.Web {
		s.Number = "Web call"
	}
	if c.Reason != "" {
		s.Why = ui.EndReason(string(c.Reason))
	}
	if !c.AnsweredAt.IsZero() {
		s.Since = c.AnsweredAt.Unix()
		if !c.EndedAt.IsZero() {
			s.Took = max(c.EndedAt.Sub(c.AnsweredAt), 0)
		}
	}
	return s
}
