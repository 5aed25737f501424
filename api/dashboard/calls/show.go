package calls

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/api/dashboard/chart"
	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/callview"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/overview"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/control/webhook"
)

type line struct {
	Role, Who   string
	Text        string
	Start, End  float64 // seconds from the answer of the call
	At          string
	Turn        int
	Interrupted bool
	Spoken      bool // part of the recording, in percent
}

type rung struct {
	After            string // seconds since the first message
	Out              bool
	Peer, Line, Note string
	Class            string // "good" or "bad" for responses
}

type pair struct{ Name, Value string }

type one struct {
	row
	control.Call

	Live         bool // the page updates itself
	Why, By      string
	Lines        []line
	Timeline     any // an SVG drawing
	Turns        []chart.Turn
	Slowest      *chart.Turn // nil without a response time
	Phases       []chart.Phase
	Playable     bool
	File         string // name of the recording when it is downloaded
	Recording    string // why there is no recording; empty if there is one
	Quality      *control.AudioQuality
	Analysis     []pair
	Variables    []pair
	Metadata     []pair
	AMD          string
	Transfer     []pair
	Cost         *costTable // nil without one
	Ring         time.Duration
	Rungs        []rung
	Deliveries   []webhook.CallDelivery
	EndAllowed   bool
	Marks        store.Marks
	TagChoice    []string
	CampaignName string // its id if it is deleted
	Query        string // filters of the list, with a leading "?"; empty without filters
}

func (c *Calls) show(r *ui.Request) (ui.Page, error) {
	call, said, err := c.Store.CallWithTranscript(r.Context(), r.Org(), r.ID())
	if err != nil {
		return ui.Page{}, err
	}
	list, err := readSearch(r)
	if err != nil && !isRefused(err) {
		return ui.Page{}, err
	}
	ladder, err := c.Store.Signaling(r.Context(), call.ID)
	if err != nil {
		return ui.Page{}, err
	}
	o := one{
		row: newRow(r.Texts, call), Call: call, Live: unsettled(call), By: r.Texts.Label("ui.ended_by", string(call.HangupBy)),
		Turns: chart.Turns(r.Texts, said.Turns), Phases: chart.Phases(r.Texts),
		Playable: call.RecordingStatus == control.RecordingReady, Recording: noRecordingText(r.Texts, call),
		File:      call.ID + path.Ext(call.RecordingKey),
		Analysis:  analysis(r.Texts, call.Analysis),
		Variables: pairs(r.Texts, call.Variables), Metadata: pairs(r.Texts, call.Metadata), AMD: evidence(r.Texts, call.AMD),
		Transfer: transfer(call.Transfer, r),
		Cost:     costOf(r.Texts, call.Cost), Query: list.suffix(), TagChoice: list.tags,
		Rungs: rungs(callview.Rungs(ladder)), EndAllowed: !call.Status.Over() && r.May(operator.Operator),
	}
	if call.Reason != "" {
		o.Why = r.Texts.Label("ui.end_reason", string(call.Reason))
	}
	if rang := call.RingingAt; !rang.IsZero() {
		until := call.AnsweredAt
		if until.IsZero() {
			until = call.EndedAt
		}
		o.Ring = max(0, until.Sub(rang))
	}
	var stretches []chart.Stretch
	o.Lines, stretches = transcript(r.Texts, c.API.View.Call(call, said).Transcript)
	placeTurns(o.Turns, o.Lines)
	if i := slices.IndexFunc(o.Turns, func(t chart.Turn) bool { return t.Slowest }); i >= 0 {
		o.Slowest = &o.Turns[i]
	}
	o.Timeline = chart.Timeline(r.Texts, stretches, o.Turns, o.Took.Seconds())
	if len(call.Quality) > 0 {
		o.Quality = &control.AudioQuality{}
		if json.Unmarshal(call.Quality, o.Quality) != nil {
			o.Quality = nil // another version of the software wrote it
		}
	}
	if err = o.readMore(r); err != nil {
		return ui.Page{}, err
	}
	if !r.May(operator.Owner) { // paths and queries may contain secrets
		for i, n := range o.Deliveries {
			o.Deliveries[i].URL = webhook.EndpointStatus{URL: n.URL}.Host()
		}
	}
	return ui.Page{
		Template: "one.html", Title: o.Number, Lead: strings.TrimPrefix(call.Name+" · "+call.AgentName, " · "),
		Crumbs: []ui.Link{{Label: r.Texts.T("calls.link.calls"), Path: "calls" + o.Query}}, Data: o,
	}, nil
}

// readMore reads what belongs to the call and is stored elsewhere.
func (o *one) readMore(r *ui.Request) (err error) {
	if o.Marks, err = store.ReadMarks(r.Context(), r.DB(), o.Call.ID); err != nil {
		return err
	}
	names, err := overview.Names(r.Context(), r.DB(), r.Org(), []overview.Group{{Campaign: o.CampaignID}})
	if err != nil {
		return err
	}
	o.CampaignName = cmp.Or(names[o.CampaignID], o.CampaignID)
	o.Deliveries, err = webhook.CallDeliveries(r.Context(), r.DB(), r.Org(), o.Call.ID)
	return err
}

// unsettled reports whether the call, its recording or its analysis may still change soon.
func unsettled(c control.Call) bool {
	if !c.Status.Over() {
		return true
	}
	late := time.Since(c.EndedAt) > 10*time.Minute
	return !late && (c.RecordingStatus == control.RecordingFinalizing || c.AnalysisStatus == "pending")
}

// noRecordingText says why there is no recording. It is empty if there is one, or may still be one.
func noRecordingText(texts *ui.Texts, c control.Call) string {
	switch c.RecordingStatus {
	case control.RecordingInProgress:
		return texts.T("calls.no_recording.in_progress")
	case control.RecordingFinalizing:
		return texts.T("calls.no_recording.storing")
	case control.RecordingFailed:
		return texts.T("calls.no_recording.failed")
	case control.RecordingDisabled:
		return texts.T("calls.no_recording.off")
	case control.RecordingReady:
		return ""
	case control.RecordingNone:
	}
	if !c.Status.Over() {
		return ""
	}
	return texts.T("calls.no_recording.none")
}

// Compressed reports whether the browser must decode the recording to draw its waveform.
func (o one) Compressed() bool { return path.Ext(o.RecordingKey) == ".opus" }

func transcript(texts *ui.Texts, said []callview.Line) ([]line, []chart.Stretch) {
	all := make([]line, len(said))
	var stretches []chart.Stretch
	for i, l := range said {
		x := line{
			Role: string(l.Role), Who: texts.Label("ui.role", string(l.Role)), Text: l.Text, Start: l.StartS, End: l.EndS,
			At: clock(l.StartS), Turn: l.Turn, Interrupted: l.Interrupted, Spoken: l.EndS > l.StartS,
		}
		if x.Spoken && (x.Role == "agent" || x.Role == "caller") {
			stretches = append(stretches, chart.Stretch{Agent: x.Role == "agent", Start: x.Start, End: x.End, Line: i})
		}
		all[i] = x
	}
	return all, stretches
}

// placeTurns sets when the agent replied in each turn.
func placeTurns(turns []chart.Turn, lines []line) {
	at := map[int]float64{}
	for _, l := range lines {
		if _, known := at[l.Turn]; l.Role == "agent" && l.Spoken && !known {
			at[l.Turn] = l.Start
		}
	}
	for i, t := range turns {
		turns[i].At = at[t.Number]
	}
}

func clock(seconds float64) string {
	s := int(seconds)
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// pairs returns the members of an object sorted by name.
func pairs(texts *ui.Texts, m map[string]any) []pair {
	all := make([]pair, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, pair{name, text(texts, m[name])})
	}
	return all
}

func text(texts *ui.Texts, v any) string {
	switch v := v.(type) {
	case string:
		return v
	case nil:
		return "–"
	case bool:
		if v {
			return texts.T("calls.value.yes")
		}
		return texts.T("calls.value.no")
	default:
		b, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return string(b)
	}
}

// analysis returns the fields that every agent has before those that the agent defines.
func analysis(texts *ui.Texts, raw json.RawMessage) []pair {
	var m map[string]any
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	var all []pair
	for _, name := range []string{"summary", "success", "sentiment", "in_voicemail", "opt_out"} {
		if v, ok := m[name]; ok {
			all = append(all, pair{texts.Label("calls.analysis", name), text(texts, v)})
			delete(m, name)
		}
	}
	return append(all, pairs(texts, m)...)
}

// transfer describes the transfer of a call.
func transfer(raw json.RawMessage, r *ui.Request) []pair {
	var t control.Transfer
	if len(raw) == 0 || json.Unmarshal(raw, &t) != nil {
		return nil
	}
	by := "SIP REFER"
	if t.Bridged {
		by = r.Texts.T("calls.transfer.second_leg")
	}
	all := []pair{
		{r.Texts.T("calls.transfer.to"), ui.FormatNumber(t.To)}, {
			r.Texts.T("calls.transfer.result"),
			t.Status,
		}, {r.Texts.T("calls.transfer.through"), by},
	}
	if t.At > 0 {
		at := time.UnixMilli(int64(t.At * 1000))
		all = append(all, pair{r.Texts.T("calls.transfer.time"), ui.DatesOf(r.Member).Second(at)})
	}
	return all
}

// evidence describes the answer detection.
func evidence(texts *ui.Texts, raw json.RawMessage) string {
	var a struct {
		Confidence float64
		Evidence   any
		MS         float64 `json:"amd_ms"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &a) != nil {
		return ""
	}
	s := texts.T("calls.answer_detection", "percent", fmt.Sprintf("%.0f", 100*a.Confidence), "seconds", fmt.Sprintf("%.1f", a.MS/1000))
	if a.Evidence != nil {
		s += ": " + strings.ReplaceAll(strings.Trim(text(texts, a.Evidence), `[]"`), `","`, ", ")
	}
	return s
}

func rungs(all []callview.Rung) []rung {
	out := make([]rung, len(all))
	for i, m := range all {
		out[i] = rung{After: fmt.Sprintf("%.3f", m.At.Sub(all[0].At).Seconds()), Out: m.Out, Peer: m.Peer, Line: m.Line, Note: m.Note}
		if f := strings.Fields(strings.TrimPrefix(m.Line, "SIP/2.0 ")); len(f) > 0 && len(f[0]) == 3 {
			switch f[0][0] {
			case '2':
				out[i].Class = "good"
			case '4', '5', '6':
				out[i].Class = "bad"
			}
		}
	}
	return out
}

func (c *Calls) end(r *ui.Request) (ui.Result, error) {
	back := "calls/" + r.ID()
	if r.Text("back") == "live" {
		back = "live?call=" + r.ID() // the panel stays open
	}
	before, err := c.Store.Call(r.Context(), r.Org(), r.ID())
	if err != nil {
		return ui.Result{}, err
	}
	if before.Status.Over() {
		return ui.Result{To: back, Notice: r.Texts.T("calls.end.over")}, nil
	}
	after, err := c.Store.End(r.Context(), r.Org(), r.ID())
	if err != nil {
		return ui.Result{}, err
	}
	err = r.Log(
		operator.Entry{
			Action: "call.end",
			Object: r.ID(),
			Before: map[string]any{"status": before.Status},
			After:  map[string]any{"status": after.Status},
		},
	)
	if after.Status.Over() {
		return ui.Result{To: back, Notice: r.Texts.T("calls.end.canceled")}, err
	}
	return ui.Result{To: back, Notice: r.Texts.T("calls.end.notice")}, err
}

func (c *Calls) replay(r *ui.Request) (ui.Result, error) {
	back := ui.Result{To: "calls/" + r.ID() + "#deliveries"}
	all, err := webhook.CallDeliveries(r.Context(), r.DB(), r.Org(), r.ID())
	if err != nil {
		return back, err
	}
	i := slices.IndexFunc(all, func(n webhook.CallDelivery) bool { return n.ID == r.Text("delivery") })
	if i < 0 {
		return back, ui.ErrNotFound
	}
	if _, err = webhook.Replay(r.Context(), c.Store.Pool, all[i].ID, r.Ticked("enable")); err != nil {
		if all[i].Disabled && !r.Ticked("enable") {
			back.Notice, back.Failed = r.Texts.T("calls.replay.disabled"), true
			return back, nil
		}
		return back, err
	}
	back.Notice = r.Texts.T("calls.replay.notice")
	return back, r.Log(
		operator.Entry{
			Action: "webhook.replay",
			Object: all[i].ID,
			Before: map[string]any{"state": all[i].State, "tries": all[i].Tries},
			After:  map[string]any{"state": "pending"},
		},
	)
}
