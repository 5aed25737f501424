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

// ErrClosed means that the session is closed.
var ErrClosed = errors.New("media session is closed")

// ErrNoKeys means that digits cannot be sent before Start.
var ErrNoKeys = errors.New("the media session has not started")

type keyInput struct {
	mu     sync.Mutex // held only briefly, by the clock, the reader and ReceiveKey
	dedup  dtmf.Deduplicator
	closed bool
}

// Press implements media.Keypad. If the remote party accepts no telephone events, the digits are sent as tones. Press
// returns ErrNoKeys before Start, and dtmf.ErrFull if more than 64 digits would be in the queue. While Mute is set,
// the digits wait.
func (s *Session) Press(keys string) error {
	if err := dtmf.Validate(keys); err != nil {
		return fmt.Errorf("press keys: %w", err)
	}
	select {
	case <-s.done:
		return fmt.Errorf("press keys: %w", ErrClosed)
	default:
	}
	if s.params.Load() == nil {
		return fmt.Errorf("press keys: %w", ErrNoKeys)
	}
	if err := s.dialer.Press(keys); err != nil {
		return fmt.Errorf("press keys: %w", err)
	}
	return nil
}

// ReceiveKey adds a digit that was received by SIP INFO. It ignores the digit if the remote party sends digits as RFC
// 4733 events.
func (s *Session) ReceiveKey(key rune) error {
	code, ok := dtmf.Code(key)
	if !ok {
		return fmt.Errorf("invalid key %q", key)
	}
	key, _ = dtmf.Key(code)
	s.queueKey(key, dtmf.Info, time.Since(s.opened))
	return nil
}

// queueKey passes a received digit on. If the queue is full, it drops this digit and keeps the earlier ones, because a
// sequence of digits makes sense only from its beginning.
func (s *Session) queueKey(key rune, method dtmf.Method, at time.Duration) {
	s.keyInput.mu.Lock()
	defer s.keyInput.mu.Unlock()
	if s.keyInput.closed || !s.keyInput.dedup.Accept(key, method, at) {
		return
	}
	select {
	case s.keys <- key:
	default:
		s.count.keysLost.Add(1)
	}
}

// maxLostToneFrames is the number of consecutive lost frames after which a held digit ends.
const maxLostToneFrames = 25

// detectTones looks for DTMF tones in a received frame. A concealed frame neither begins nor ends a digit.
func (s *Session) detectTones(f media.Frame) {
	t := s.params.Load()
	if t == nil || t.detector == nil {
		return
	}
	if !s.reader.IsConcealed() {
		s.lostFrames = 0
	} else if s.lostFrames++; s.lostFrames <= maxLostToneFrames {
		t.detector.MarkGap()
		return
	}
	key, pressed := t.detector.Detect(f)
	if !pressed {
		return
	}
	at, ok := s.Arrived()
	if !ok {
		at = time.Now()
	}
	s.queueKey(key, dtmf.InBand, at.Sub(s.opened)-dtmf.Delay)
}

// sendEvent sends the event packet of a digit in place of audio (RFC 4733 section 2.5.1).
func (s *Session) sendEvent(p *activeParams, step dtmf.Step) {
	const volume = 10 // in -dBm0
	o := &s.sender
	if step.IsFirst() {
		if o.pending > 0 { // audio from before the digit
			s.sendPacket(packet{marker: o.marker, pt: p.PayloadType, ts: o.ts - uint32(o.pending)}, o.pending) //nolint:gosec // wraps
		}
		o.event = o.ts
	}
	o.pending, o.marker = 0, true
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
	s.sendPacket(packet{marker: step.IsFirst(), pt: p.KeyType, ts: o.event}, 4)
}
