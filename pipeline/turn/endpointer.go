package turn

import (
	"strings"
	"time"

	"github.com/parley-voice/parley/pipeline/eot"
)

// endpointer decides how long the caller's silence must last to end the turn.
type endpointer struct {
	policy   *Policy
	question string // the agent's words before this turn
	prosody  Event  // Lull or Silence event that holds the prosody of the last speech
	judge    judgment
	pauses   time.Duration // mean length of the pauses after which the caller continued
	cutOffs  int           // number of answers that spoke over the caller; onReplyEnd reduces it
	clean    int           // number of turns since the last cut-off

	asked    eot.Pause // newest question to the built-in model
	answered eot.Guess // answer to asked
}

// A judgment is a question to the classifier and its answer.
type judgment struct {
	text  string        // normalized text of the question
	asked time.Duration // when the question was sent
	at    time.Duration // when the answer came; 0 without an answer
	due   time.Duration // time until which the commit waited for the answer; 0 if it did not wait
	p     float64
}

// pause describes the pause after text, for a classifier.
func (p *endpointer) pause(text string) eot.Pause {
	return eot.Pause{
		Text: text, Asked: p.question, Language: p.policy.Language,
		Prosody: eot.Prosody{Fall: p.prosody.Pitch, Trail: p.prosody.Trail, Known: p.prosody.HasProsody},
	}
}

// guess estimates the probability that the caller has finished. The classifier
// overrides the recognizer, which overrides the built-in model. A pause is judged several times with the same words.
func (p *endpointer) guess(text string, r *recognizer) eot.Guess {
	if x := p.pause(text); x != p.asked {
		p.asked, p.answered = x, x.Guess()
	}
	g := p.answered
	if r.eot > 0 {
		g.P, g.Reason = r.eot, "recognizer"
	}
	if p.judge.at > 0 && p.judge.p >= 0 && p.judge.text == wording(text) {
		g.P, g.Reason = p.judge.p, "classifier"
	}
	return g
}

// wait returns how long after the caller's last sound the turn ends. After a cut-off the wait is longer than the caller's
// usual pause, up to a limit, unless the words are clearly complete.
func (p *endpointer) wait(g eot.Guess) time.Duration {
	d := p.policy.Waits.at(g.P)
	if g.Dictation {
		d += dictation
	}
	if g.P < 0.9 && p.cutOffs > 0 {
		d = max(d, min(p.pauses*5/4, slowest))
	}
	return min(d, mostPatient)
}

// due returns when the turn ends if the caller stays silent. The first call for a text also
// asks the classifier.
func (p *endpointer) due(at time.Duration, text string, c *caller, r *recognizer) (due time.Duration, acts []Action) {
	due = c.lastEnd + p.wait(p.guess(text, r))
	switch {
	case strings.HasSuffix(c.keys, "#"), c.typed != "":
		due = at
	case c.keys != "":
		due = c.keyAt + p.policy.Keys
	case p.policy.Classifier > 0:
		if same := wording(text); p.judge.text != same {
			p.judge = judgment{text: same, asked: at}
			acts = append(acts, Action{Do: Judge, Text: text})
		}
		if last := p.judge.asked + p.policy.Classifier; p.judge.at == 0 && due < last {
			due, p.judge.due = last, last
		}
	}
	if c.sound && !c.voiced && due <= at {
		due = at + 60*time.Millisecond // the next frames show whether the caller continues
	}
	return due, acts
}

// onJudgment stores the classifier's answer. It reports false if the answer is about an earlier text.
func (p *endpointer) onJudgment(e Event) bool {
	if wording(e.Text) != p.judge.text {
		return false
	}
	p.judge.at, p.judge.p = e.At, e.P
	return true
}

// judgedAt returns the time until which the commit waited for the classifier; 0 if it did not
// wait.
func (p *endpointer) judgedAt() time.Duration {
	if p.judge.at != 0 {
		return p.judge.at
	}
	return p.judge.due
}

func (p *endpointer) onProsody(e Event) {
	if e.HasProsody {
		p.prosody = e
	}
}

// onPause learns from a pause that lasted from since to the caller's next onset.
func (p *endpointer) onPause(since, onset time.Duration) {
	gap := onset - since
	if since == 0 || gap < shortPause || gap > longPause {
		return
	}
	if p.pauses == 0 {
		p.pauses = gap
	}
	p.pauses += (gap - p.pauses) / 3
}

// onCutOff learns that an answer spoke over a caller who had paused at since.
func (p *endpointer) onCutOff(since, onset time.Duration) {
	p.cutOffs, p.clean = min(p.cutOffs+1, mostCutOffs), -1 // -1, because the next reply to end does not count as clean
	p.onPause(since, onset)
}

// onReplyEnd reduces the number of cut-offs by one after several replies without a cut-off.
func (p *endpointer) onReplyEnd() {
	if p.clean++; p.clean >= forgiven {
		p.cutOffs, p.clean = max(0, p.cutOffs-1), 0
	}
}
