package live

import (
	"cmp"
	"fmt"

	"github.com/parley-voice/parley/api/dashboard/chart"
	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/operator"
)

// chosenCall is the parameter with the id of the call in the panel.
const chosenCall = "call"

// Bounds of the panel: the last lines and turns. The page of the call has all of them.
const (
	panelLines = 100
	panelTurns = 20
)

// A panel shows one call beside the table.
type panel struct {
	control.Call

	Number     string
	Since      int64 // control.Call.Since in epoch seconds
	Why        string
	Lines      []transcriptLine
	Turns      []chart.Turn
	Phases     []chart.Phase
	More       bool // there are earlier lines or turns
	EndAsked   bool
	EndAllowed bool
}

type transcriptLine struct {
	Role, Who, At, Text string
	Interrupted         bool
}

// panel returns the chosen call, nil without one.
func (l *Live) panel(r *ui.Request) (*panel, error) {
	id := r.Query(chosenCall)
	if id == "" || l.Calls == nil {
		return nil, nil //nolint:nilnil // no call is chosen
	}
	c, said, err := l.Calls.Store.CallWithTranscript(r.Context(), r.Org(), id)
	if control.CodeOf(err) == control.CodeCallNotFound {
		return nil, nil //nolint:nilnil // the call was removed, or the address is wrong
	}
	if err != nil {
		return nil, err
	}
	p := &panel{
		Call: c, Number: cmp.Or(ui.FormatNumber(c.To), r.Texts.T("live.calls.web_call")),
		Since:  c.Since().Unix(),
		Phases: chart.Phases(r.Texts), EndAllowed: !c.Status.Over() && r.May(operator.Operator),
	}
	if c.Type == control.Web {
		p.Number = r.Texts.T("live.calls.web_call")
	}
	if c.Reason != "" {
		p.Why = r.Texts.Label("ui.end_reason", string(c.Reason))
	}
	lines, turns := l.Calls.View.Call(c, said).Transcript, said.Turns
	p.More = len(lines) > panelLines || len(turns) > panelTurns
	for _, s := range lines[max(0, len(lines)-panelLines):] {
		at := int(s.StartS)
		p.Lines = append(p.Lines, transcriptLine{
			Role: string(s.Role), Who: r.Texts.Label("ui.role", string(s.Role)), At: fmt.Sprintf("%d:%02d", at/60, at%60),
			Text: s.Text, Interrupted: s.Interrupted,
		})
	}
	p.Turns = chart.Turns(r.Texts, turns[max(0, len(turns)-panelTurns):])
	return p, nil
}

// Response times, in ms, up to which a mark is good and acceptable.
const (
	goodResponse = 1000
	fairResponse = 2000
)

// lastResponse returns the response time of the last turn with one, and its CSS class. The greeting does not count.
func lastResponse(all []chart.Turn) (ms float64, mark string) {
	for _, t := range all {
		if t.Number > 0 && t.Total > 0 {
			ms = t.Total
		}
	}
	switch {
	case ms == 0:
		return 0, ""
	case ms <= goodResponse:
		return ms, "good"
	case ms <= fairResponse:
		return ms, "busy"
	default:
		return ms, "bad"
	}
}
