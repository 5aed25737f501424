package rtp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/dtmf"
)

// ErrClosed is returned once a session is closed.
var ErrClosed = errors.New("media session is closed")

// ErrNoKeys is why no keys can be pressed: the party did not offer to take
// them.
var ErrNoKeys = errors.New("the party takes no keys")

// A pad is where the keys that were heard come together.
type pad struct {
	mu     sync.Mutex // held for a moment by clock, reader and who calls Key
	funnel dtmf.Funnel
	closed bool
}

// Press implements media.Keypad. It is ErrNoKeys where the party takes no
// events, and tones were not agreed on; dtmf.ErrFull where more than 64 keys
// would wait. While the party does not want to hear us, keys wait.
func (s *Session) Press(keys string) error {
	if err := dtmf.Check(keys); err != nil {
		return fmt.Errorf("press keys: %w", err)
	}
	select {
	case <-s.done:
		return fmt.Errorf("press keys: %w", ErrClosed)
	default:
	}
	if t := s.params.Load(); t == nil || t.KeyType == 0 && !t.InBand {
		return fmt.Errorf("press keys: %w", ErrNoKeys)
	}
	if err := s.dialer.Press(keys); err != nil {
		return fmt.Errorf("press keys: %w", err)
	}
	return nil
}

// Key takes a key that the party pressed and told beside the audio, by SIP
// INFO. Where keys come as events, those are what counts.
func (s *Session) Key(key rune) error {
	code, ok := dtmf.Code(key)
	if !ok {
		return fmt.Errorf("no such key: %q", key)
	}
	key, _ = dtmf.Key(code)
	s.dialled(key, dtmf.Info, time.Since(s.opened))
	return nil
}

// dialled hands a key on that came by way at at. A full queue drops the
// newest: nobody has taken a key for a long while, and what was dialled first
// is what makes sense of the rest.
func (s *Session) dialled(key rune, way dtmf.Way, at time.Duration) {
	s.pad.mu.Lock()
	defer s.pad.mu.Unlock()
	if s.pad.closed || !s.pad.funnel.Hear(key, way, at) {
		return
	}
	select {
	case s.keys <- key:
	default:
		s.count.keysLost.Add(1)
	}
}

// gone is how many frames in a row may be lost of a key that is held. After
// them it is let go.
const gone = 25

// overhear finds keys in a frame that was read, where they may be tones. What
// stands for sound that was lost has none, and ends none.
func (s *Session) overhear(f media.Frame) {
	t := s.params.Load()
	if t == nil || t.ear == nil {
		return
	}
	if !s.reader.Made() {
		s.missed = 0
	} else if s.missed++; s.missed <= gone {
		t.ear.Miss()
		return
	}
	key, pressed := t.ear.Hear(f)
	if !pressed {
		return
	}
	at, ok := s.Arrived()
	if !ok {
		at = time.Now()
	}
	s.dialled(key, dtmf.InBand, at.Sub(s.opened)-dtmf.Delay)
}

// event sends what a frame tells of a key, in place of audio (RFC 4733 section
// 2.5.1).
func (s *Session) event(p *terms, step dtmf.Step) {
	const volume = 10 // -dBm0
	o := &s.sender
	if step.First() {
		if o.held > 0 { // what was said before it
			s.packet(packet{marker: o.marker, pt: p.PayloadType, ts: o.ts - uint32(o.held)}, o.held) //nolint:gosec // wraps on a circle
		}
		o.event = o.ts
	}
	o.held, o.marker = 0, true
	frames, end, ok := step.Event()
	if !ok {
		return
	}
	b := o.wire[headerLen:]
	b[0], b[1] = step.Code, volume
	if end {
		b[1] |= 0x80
	}
	binary.BigEndian.PutUint16(b[2:], uint16(frames*frameLen)) //nolint:gosec // at most 800
	s.packet(packet{marker: step.First(), pt: p.KeyType, ts: o.event}, 4)
}
