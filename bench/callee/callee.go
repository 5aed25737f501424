// Package callee plays a scripted called party. It records what the callee said and heard, with a
// time for each sample, and does not judge the recording.
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

// A Line is one utterance of the callee.
type Line struct {
	PCM []int16 // samples at 8 kHz, including pauses
	// Into starts the line this long after the other side has started to speak. 0 waits until the
	// other side is silent.
	Into time.Duration
	// Think is how long the other side must be silent before the next line; 0 means 500 ms.
	Think time.Duration
	// Unanswered means that the callee does not wait for an answer, only for Think.
	Unanswered bool
	// Press holds the DTMF keys sent at the start of the line.
	Press string
	// Wait is how long the callee listens after the line. Ends means that the other side should
	// end the call during Wait.
	Wait time.Duration
	Ends bool
	// Hangup ends the call right after the line.
	Hangup bool
}

// A Script is the behavior of a callee on one call: it waits for the greeting,
// says its lines, and hangs up.
type Script struct {
	Lines []Line
	// First lets the callee speak before the greeting.
	First bool
	// Echo is the delay of an echo of received audio, 20 dB softer than the original. It is
	// rounded down to whole frames; 0 disables the echo.
	Echo time.Duration
	// Noise is repeated in the background of all sent audio.
	Noise []int16
	// Said is called after every line; nil disables it.
	Said func()
}

const (
	think    = 500 * time.Millisecond
	patience = 6 * time.Second // longest wait for an answer
	// gone is the silence after which the other side counts as starting to speak again.
	gone = 700 * time.Millisecond
	// over is how shortly before the end of a line the other side must be audible to count as
	// having interrupted the line. The callee then waits only for silence, not for an answer.
	over = 100 * time.Millisecond
	// Playout is the depth of the callee's jitter buffer.
	Playout = 40 * time.Millisecond
)

// A Spoken is a line with the times at which the callee spoke it.
type Spoken struct {
	Line int // number of the line
	// Left is when the callee passed each frame to the leg. Held is how long the leg then kept
	// each frame, such as for a packet of several frames.
	Left []time.Time
	Held []time.Duration

	due  []time.Time // when each frame was due
	lags Lags
}

// departures is implemented by legs that know when they sent a frame.
type departures interface {
	// Departed returns when the leg sent the frame that was due at due.
	Departed(due time.Time) (time.Time, bool)
}

func (s *Spoken) wait(leg media.Leg) {
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

// SpokenAt returns when sample i of the line was spoken. A frame is passed to the leg after its last sample.
func (s Spoken) SpokenAt(i, rate int) time.Time {
	n := media.FrameLen(rate)
	at := min(i/n, len(s.Left)-1)
	return s.Left[at].Add(time.Duration(i-(at+1)*n)*time.Second/time.Duration(rate) + s.lags.Said)
}

// SentAt returns when the packet with sample i of the line left. The audio lags on some legs
// (Lags), so this may be a packet after those of the line.
func (s Spoken) SentAt(i, rate int) time.Time {
	at := max(0, (i+int(s.lags.Sent*time.Duration(rate)/time.Second))/media.FrameLen(rate))
	more := time.Duration(max(0, at-len(s.Left)+1)) * media.FrameTime
	at = min(at, len(s.Left)-1)
	if at < len(s.Held) {
		more += s.Held[at]
	}
	return s.Left[at].Add(more)
}

// A Record is a call as the callee saw it.
type Record struct {
	Answered time.Time
	Said     []Spoken
	Heard    Track
	Ended    time.Time
	Complete bool // all lines were said, or the other side ended the call as planned
}

// Between returns the audio said and heard in a time range. The said audio comes from lines,
// which are the lines of the script.
func (r Record) Between(lines []Line, from, to time.Time) (said, heard []int16) {
	rate := r.Heard.Rate
	at := func(t time.Time) int { return int(t.Sub(from) * time.Duration(rate) / time.Second) }
	said, heard = make([]int16, at(to)), make([]int16, at(to))
	put := func(to []int16, pcm []int16, at int) {
		pcm = pcm[min(len(pcm), max(0, -at)):]
		copy(to[min(len(to), max(0, at)):], pcm)
	}
	for _, s := range r.Said {
		put(said, lines[s.Line].PCM, at(s.SpokenAt(0, rate)))
	}
	frame := media.FrameLen(rate)
	for i, t := range r.Heard.PlayTimes() {
		put(heard, r.Heard.PCM[i*frame:(i+1)*frame], at(t))
	}
	return said, heard
}

// Perform runs the script on leg, until the script or the call ends.
func Perform(ctx context.Context, leg media.Leg, s Script) Record {
	leg = narrowLeg(leg)
	p := &performer{leg: leg, frame: make(media.Frame, media.FrameLen(leg.Rate())), player: newPlayer(s.Echo, s.Noise)}
	p.record.Answered, p.record.Heard.Rate = time.Now(), leg.Rate()
	leg.Play(p.player)
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

type performer struct {
	leg    media.Leg
	frame  media.Frame
	player *player
	record Record
	last   time.Time // when the other side was last audible
	began  time.Time // when the other side started to speak; pauses up to gone are ignored
}

var errOver = errors.New("the call has ended")

// read reads the next frame and reports whether it is audible.
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
	p.player.hear(p.frame)
	loud := tone.Level(p.frame) > acoustic.Audible
	if loud {
		if now.Sub(p.last) > gone {
			p.began = now
		}
		p.last = now
	}
	return loud, nil
}

// line waits for the start time of line n, says it, and listens for l.Wait.
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

// say says a line and waits until it was sent.
func (p *performer) say(ctx context.Context, n int, l Line) error {
	p.player.say(l.PCM)
	for {
		select {
		case l := <-p.player.done:
			p.record.Said = append(p.record.Said, Spoken{Line: n, Left: l.left, due: l.due})
			return nil
		default:
			if _, err := p.read(ctx); err != nil {
				return err
			}
		}
	}
}

// rest waits until the other side has answered and is silent, or patience is over.
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
			return nil // no answer came; the recording shows it
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

// into waits until the other side has spoken for d, or has remained silent for patience and d.
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
