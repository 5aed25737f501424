// Package callee plays the party of a call that a script is followed by, and
// keeps what it said and heard on one clock, sample by sample. What was heard is
// judged later, by others.
package callee

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/parley-voice/parley/bench/acoustic"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
)

// A Line is one thing that the callee says.
type Line struct {
	PCM []int16 // with its pauses, at 8 kHz
	// Into has the line said into the other side's speech, once that has been
	// audible for so long; 0 says it in silence.
	Into time.Duration
	// Think is how long the other side must be silent before the line after
	// this one is said; 0 means 500 ms.
	Think time.Duration
	// Unanswered lines need no answer: Think alone is waited for.
	Unanswered bool
	// Press are keys that are pressed as the line begins.
	Press string
	// Wait is how long the callee then listens, whatever it hears, before it goes
	// on. Ends tells that the other side is to end the call meanwhile.
	Wait time.Duration
	Ends bool
	// Hangup leaves right after the line.
	Hangup bool
}

// A Script is what a callee does on one call: it lets the other side greet, says
// its lines, and leaves.
type Script struct {
	Lines []Line
	// First has the callee speak before it is greeted.
	First bool
	// Echo is how late the callee sends back what it hears, 20 dB softer; 0
	// sends nothing back. It is rounded to whole frames.
	Echo time.Duration
	// Noise is heard behind all that the callee says, and in its silence, over
	// and over.
	Noise []int16
	// Said, where set, is told of every line that is over.
	Said func()
}

// Times of a callee.
const (
	think    = 500 * time.Millisecond
	patience = 6 * time.Second // for an answer
	// gone is how long the other side must be silent for its speech to have
	// ended while the callee waits to speak into it.
	gone = 700 * time.Millisecond
	// over is how shortly before the end of a line the other side was audible
	// that is taken to have talked over it: there is no more to wait for than
	// its silence.
	over = 100 * time.Millisecond
	// Playout is the depth of the jitter buffer that the callee listens
	// through.
	Playout = 40 * time.Millisecond
)

// A Said is a line as it was said.
type Said struct {
	Line int // its number
	// Left is when each frame of the line was handed over, and Held how long it
	// then waited for its packet to be full and on its way: of packets of a frame,
	// not at all, as far as the leg knows.
	Left []time.Time
	Held []time.Duration

	due  []time.Time // of each frame
	lags Lags
}

// departures are kept by legs that know when each frame that they asked for left
// this process.
type departures interface {
	// Departed is when the frame that was due at due left.
	Departed(due time.Time) (time.Time, bool)
}

// wait finds how long each frame waited.
func (s *Said) wait(leg media.Leg) {
	d, exact := leg.(departures)
	s.Held = make([]time.Duration, len(s.Left))
	for i, left := range s.Left {
		s.Held[i] = max(0, s.due[i].Sub(left))
		if !exact {
			continue
		}
		if at, ok := d.Departed(s.due[i]); ok {
			s.Held[i] = at.Sub(left)
		}
	}
}

// Spoken is when sample i of the line was spoken: a frame is handed over once its
// last sample is.
func (s Said) Spoken(i, rate int) time.Time {
	n := media.FrameLen(rate)
	at := min(i/n, len(s.Left)-1)
	return s.Left[at].Add(time.Duration(i-(at+1)*n)*time.Second/time.Duration(rate) + s.lags.Said)
}

// Sent is when the packet that holds sample i of the line left. Of a line that is
// late it may be one after the last frame that was handed over.
func (s Said) Sent(i, rate int) time.Time {
	at := max(0, (i+int(s.lags.Sent*time.Duration(rate)/time.Second))/media.FrameLen(rate))
	more := time.Duration(max(0, at-len(s.Left)+1)) * media.FrameTime
	at = min(at, len(s.Left)-1)
	if at < len(s.Held) {
		more += s.Held[at]
	}
	return s.Left[at].Add(more)
}

// A Record is a call as the callee had it.
type Record struct {
	Answered time.Time
	Said     []Said
	Heard    Track
	Ended    time.Time
	Complete bool // every line was said, or the other side left where it was to
}

// Between is what was said, of the lines of the script, and what was heard from
// one time to another.
func (r Record) Between(lines []Line, from, to time.Time) (said, heard []int16) {
	rate := r.Heard.Rate
	at := func(t time.Time) int { return int(t.Sub(from) * time.Duration(rate) / time.Second) }
	said, heard = make([]int16, at(to)), make([]int16, at(to))
	put := func(to []int16, pcm []int16, at int) {
		pcm = pcm[min(len(pcm), max(0, -at)):]
		copy(to[min(len(to), max(0, at)):], pcm)
	}
	for _, s := range r.Said {
		put(said, lines[s.Line].PCM, at(s.Spoken(0, rate)))
	}
	frame := media.FrameLen(rate)
	for i, t := range r.Heard.Played() {
		put(heard, r.Heard.PCM[i*frame:(i+1)*frame], at(t))
	}
	return said, heard
}

// Perform follows the script on leg, until its end or the leg's.
func Perform(ctx context.Context, leg media.Leg, s Script) Record {
	leg = narrowed(leg)
	p := &performer{leg: leg, frame: make(media.Frame, media.FrameLen(leg.Rate())), mouth: newMouth(s.Echo, s.Noise)}
	p.record.Answered, p.record.Heard.Rate = time.Now(), leg.Rate()
	leg.Play(p.mouth)
	var err error
	if !s.First {
		err = p.rest(ctx, Line{})
	}
	for i, line := range s.Lines {
		if err == nil {
			err = p.line(ctx, i, line)
		}
		if answering := i+1 < len(s.Lines) && s.Lines[i+1].Into > 0; err == nil && !line.Hangup && !answering {
			err = p.rest(ctx, line)
		}
		if err != nil {
			break
		}
		if s.Said != nil {
			s.Said()
		}
	}
	lags := lagsOf(leg)
	p.record.Heard.Lag = lags.Heard
	for i := range p.record.Said {
		p.record.Said[i].wait(leg)
		p.record.Said[i].lags = lags
	}
	p.record.Complete = p.record.Complete || err == nil
	p.record.Ended = time.Now()
	return p.record
}

// performer is a callee on its call.
type performer struct {
	leg    media.Leg
	frame  media.Frame
	mouth  *mouth
	record Record
	last   time.Time // when the other side was last audible
	began  time.Time // when its speech began, with pauses shorter than gone
}

var errOver = errors.New("the call is over")

// read takes the next frame and tells whether it is audible.
func (p *performer) read(ctx context.Context) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err := p.leg.ReadFrame(p.frame); err != nil {
		if errors.Is(err, io.EOF) {
			return false, errOver
		}
		return false, err
	}
	now := time.Now()
	at, measured := now, false
	if a, ok := p.leg.(media.Arrival); ok {
		if at, measured = a.Arrived(); !measured {
			at = now
		}
	}
	p.record.Heard.add(p.frame, at, measured)
	p.mouth.hear(p.frame)
	loud := tone.Level(p.frame) > acoustic.Audible
	if loud {
		if now.Sub(p.last) > gone {
			p.began = now
		}
		p.last = now
	}
	return loud, nil
}

// line says a line when it is its turn, and listens for as long as it asks for.
func (p *performer) line(ctx context.Context, n int, l Line) error {
	if l.Into > 0 {
		if err := p.into(ctx, l.Into); err != nil {
			return err
		}
	}
	if l.Press != "" {
		if err := press(p.leg, l.Press); err != nil {
			return err
		}
	}
	if err := p.say(ctx, n, l); err != nil || l.Wait == 0 {
		return err
	}
	err := p.wait(ctx, l.Wait)
	p.record.Complete = errors.Is(err, errOver) && l.Ends
	return err
}

// say says a line and waits until it left.
func (p *performer) say(ctx context.Context, n int, l Line) error {
	p.mouth.say(l.PCM)
	for {
		select {
		case l := <-p.mouth.done:
			p.record.Said = append(p.record.Said, Said{Line: n, Left: l.left, due: l.due})
			return nil
		default:
			if _, err := p.read(ctx); err != nil {
				return err
			}
		}
	}
}

// rest waits until the other side has had its say after the line.
func (p *performer) rest(ctx context.Context, l Line) error {
	began := time.Now()
	answered := l.Unanswered || began.Sub(p.last) < over
	if l.Think == 0 {
		l.Think = think
	}
	for {
		loud, err := p.read(ctx)
		now := time.Now()
		switch {
		case err != nil:
			return err
		case loud:
			answered = true
		case !answered && now.Sub(began) > patience:
			return nil // dead air: whoever judges will see
		case answered && now.Sub(p.last) > l.Think && now.Sub(began) > l.Think:
			return nil
		}
	}
}

// wait listens for d.
func (p *performer) wait(ctx context.Context, d time.Duration) error {
	for until := time.Now().Add(d); time.Now().Before(until); {
		if _, err := p.read(ctx); err != nil {
			return err
		}
	}
	return nil
}

// into waits until the other side has been audible for d, or has nothing to say.
func (p *performer) into(ctx context.Context, d time.Duration) error {
	began := time.Now()
	for {
		_, err := p.read(ctx)
		now := time.Now()
		switch {
		case err != nil:
			return err
		case p.began.After(began) && now.Sub(p.began) > d, now.Sub(began) > patience+d:
			return nil
		}
	}
}
