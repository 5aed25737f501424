package conversation

import (
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/input"
	"github.com/parley-voice/parley/pipeline/playout"
	"github.com/parley-voice/parley/pipeline/redact"
	"github.com/parley-voice/parley/pipeline/turn"
)

// record collects the lines and turns of a call, and the history for the model. It
// belongs to the session loop.
type record struct {
	*call
	history history
	pressed redact.PressedKeys
	lines   []pipeline.Line
	turns   []pipeline.Turn
	current *account   // open turn; nil for none
	number  int        // number of the next turn
	specs   int        // number of answers begun before the commit of the turn
	onset   input.Edge // time of the caller's last Voice event
	silence input.Edge // time of the caller's last Lull or Silence event
}

// turn returns the number of the open turn, or of the last one.
func (r *record) turn() int { return max(0, r.number-1) }

// openGreeting opens the turn of the agent's first words.
func (r *record) openGreeting(of *reply) {
	r.number++
	r.current = &account{
		Number: r.number - 1, T0: r.config.AnsweredAt, Reason: "answered", Of: of.Utterance, Began: of.began,
	}
}

// openUnheard opens a turn for speech of the caller that has no transcript. If a turn is open, it does nothing.
func (r *record) openUnheard() {
	if r.current != nil {
		return
	}
	r.number++
	r.current = &account{
		Number: r.number - 1, Caller: true, T0: r.silence.Voiced, Waited: r.silence.Waited, Verdict: r.silence.At,
		Estimated: r.silence.Estimated, Reason: turn.RecognizerSilent,
	}
}

// openTurn opens the turn of the Commit action a. If the action continues a retracted turn, the new account keeps the
// number and the first phases of that turn.
func (r *record) openTurn(a turn.Action) {
	answered, before := r.config.AnsweredAt, r.current
	x := &account{
		Caller: true, T0: r.silence.Voiced, Waited: r.silence.Waited, Verdict: r.silence.At,
		Usable: answered.Add(a.Usable), Commit: time.Now(),
		Estimated: r.silence.Estimated, Reason: a.Reason, Specs: r.specs,
	}
	r.current, r.specs = x, 0
	if a.Judged > 0 {
		x.Judged = answered.Add(a.Judged)
	}
	if r.since(r.silence.From) != a.From { // the voice activity detector missed the speech
		x.T0, x.Waited, x.Verdict, x.Estimated = answered.Add(a.From), 0, x.Usable, true
	}
	from := r.onset.From
	if a.Text == "" { // the caller only pressed keys
		from = x.T0
	}
	if before == nil || a.Fragments <= 1 {
		x.Number = r.number
		r.number++
	} else {
		x.Number, x.Fragments, x.First = before.Number, a.Fragments, before.First
		if x.First == nil {
			x.First = before.Spans()
		}
		if before.Line != nil {
			from = answered.Add(before.Line.Start)
		}
	}
	if a.Noted {
		return
	}
	x.Line = &pipeline.Line{
		Role: pipeline.RoleCaller, Text: CallerLine(a.Text, a.Keys), Turn: x.Number,
		Start: min(r.since(from), r.since(x.T0)), End: r.since(x.T0),
	}
}

func (r *record) answerWith(of *reply) {
	r.current.Of, r.current.Ran, r.current.Began = of.Utterance, of.book.DurationBetween, of.began
}

// closeTurn closes the open turn. tools is how long its tools ran.
func (r *record) closeTurn(ending pipeline.Ending, tools time.Duration) {
	if r.current == nil {
		return
	}
	t := r.current.Turn(ending)
	t.Tools = tools
	r.turns = append(r.turns, t)
	if r.config.Observer != nil {
		r.config.Observer.OnTurn(t)
	}
	r.current = nil
}

// addLine adds a line to the transcript. It redacts the digits that the caller pressed.
func (r *record) addLine(l pipeline.Line) {
	l.Text = r.pressed.Redact(pipeline.Clean(l.Text))
	for i := range l.Words {
		l.Words[i].Text = r.pressed.Redact(pipeline.Clean(l.Words[i].Text))
	}
	r.lines = append(r.lines, l)
	if r.config.Observer != nil {
		r.config.Observer.OnLine(l)
	}
}

// addCallerText adds a line of the caller that belongs to no turn.
func (r *record) addCallerText(text string, start, end time.Duration) {
	r.addLine(pipeline.Line{Role: pipeline.RoleCaller, Text: text, Start: start, End: end, Turn: r.turn()})
}

// addUnanswered adds words of the caller that the agent will not answer.
func (r *record) addUnanswered(text string) {
	if text == "" {
		return
	}
	from, to := r.since(r.onset.From), r.since(r.silence.From)
	r.history.Add(pipeline.Message{Role: pipeline.RoleCaller, Text: text})
	r.addCallerText(text, max(0, min(from, to)), max(0, to))
}

func (r *record) addCallerLine() {
	if r.current != nil && r.current.Line != nil {
		r.addLine(*r.current.Line)
		r.current.Line = nil
	}
}

// addAgentLine adds the words of u that the caller heard to the transcript and, if remember is set, to the history.
func (r *record) addAgentLine(u *playout.Utterance, whole, remember bool) {
	text, words := u.Transcript(whole)
	if text == "" {
		return
	}
	end := r.since(time.Now())
	start := min(end, max(0, r.since(u.StartedAt())))
	for i := range words {
		words[i].Start += start
		words[i].End += start
	}
	if remember {
		r.history.Add(pipeline.Message{Role: pipeline.RoleAgent, Text: heardText(text, whole)})
	}
	r.addLine(pipeline.Line{
		Role: pipeline.RoleAgent, Text: text, Start: start, End: end, Turn: r.turn(), Interrupted: !whole, Words: words,
	})
}

func (r *record) addTools(of *reply) {
	messages, entries := of.book.Close()
	r.history.Add(messages...)
	for _, e := range entries {
		r.addLine(pipeline.Line{
			Role: pipeline.RoleTool, Text: e.Text, Start: r.since(e.Began), End: r.since(e.Ended), Turn: r.turn(),
		})
	}
}

func (r *record) addNote(text string) {
	r.history.Add(pipeline.Message{Role: pipeline.RoleNote, Text: text})
}
