package rtp

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/crypt"
	"github.com/parley-voice/parley/media/dtmf"
	"github.com/parley-voice/parley/media/jitter"
	"github.com/parley-voice/parley/media/stream"
	"github.com/parley-voice/parley/media/udp"
)

// Rate is the rate of the RTP clock of every session in Hz, and the sample
// rate of those that are not wideband.
const Rate = 8000

const (
	frameLen   = Rate / int(time.Second/media.FrameTime) // of the RTP clock, and bytes of any codec
	maxFrame   = 2 * frameLen                            // samples, of a wideband session
	keysQueued = 32
)

// Params are what the two sides agreed on.
type Params struct {
	// Remote is where to send, as SDP told it. Where the party turns out to
	// send from elsewhere, it is sent to there.
	Remote netip.AddrPort
	// Codec and PayloadType are those of the audio, both ways.
	Codec       codec.Codec
	PayloadType uint8
	// Others are the further payload types that the party may send audio under,
	// and change to at any packet.
	Others []codec.Mapping
	// ComfortType is the payload type of comfort noise, where it is another
	// than the static one.
	ComfortType uint8
	// Ours and Theirs are the keys that audio and reports are encrypted with,
	// ours under Ours. Where they are not set, all is plain.
	Ours, Theirs crypt.Key
	// KeyType is the payload type of telephone events; 0 where there is none.
	KeyType uint8
	// KeyAlias is a payload type under which events are heard as well; 0 where
	// there is none.
	KeyAlias uint8
	// InBand has keys heard as tones in the audio too, and pressed as such
	// where KeyType is 0.
	InBand bool
	// Ptime is how much audio the party wants in one packet, in steps of 10 ms
	// from 10 to 60; 0 is 20 ms.
	Ptime time.Duration
	// RTCP is where reports go, as SDP told it; where it is not valid, to the
	// port above the audio's. With Mux they go, and come, where the audio does
	// (RFC 5761).
	RTCP netip.AddrPort
	Mux  bool
	// Mute stops sending: the party does not want to hear us.
	Mute bool
	// FirstWithin and Within are how long the party may be silent on the wire
	// before it is first heard, and after. Zero lets it be silent for ever.
	FirstWithin, Within time.Duration
	// Expired is called once when it was silent for too long, on a goroutine
	// that Close waits for: it must not close the session itself.
	Expired func()
}

// A Session is the media of one party: a media.Source, the sending side of a
// media.Leg, and a media.Arrival. ReadFrame and Arrived belong to one
// goroutine; the rest may be called from any.
type Session struct {
	transport *Transport
	socket    *udp.Socket
	detach    func()
	opened    time.Time // zero of the session's own time

	start  sync.Mutex // held by Start
	params atomic.Pointer[terms]
	feed   atomic.Pointer[media.Feed]
	keys   chan rune
	pad    pad
	dialer *dtmf.Dialer
	done   chan struct{}
	wake   chan struct{} // holds at most one wish to look again
	read   atomic.Bool   // a reader is there
	close  sync.Once
	told   sync.WaitGroup // of Expired
	count  counters
	in     jitter.Ring

	control  control
	sender   sender         // owned by the clock
	receiver receiver       // owned by the clock
	reader   *stream.Reader // owned by who reads
	missed   int            // frames in a row that were made up; likewise
}

func newSession(t *Transport, socks pair) *Session {
	s := &Session{
		transport: t,
		socket:    socks.audio,
		opened:    time.Now(),
		keys:      make(chan rune, keysQueued),
		dialer:    dtmf.NewDialer(),
		done:      make(chan struct{}),
		wake:      make(chan struct{}, 1),
	}
	s.sender.init()
	s.control.init(socks.reports)
	s.reader = stream.New()
	return s
}

// Local is the address to tell the party in SDP.
func (s *Session) Local() netip.AddrPort {
	return netip.AddrPortFrom(s.transport.public, s.socket.Local().Port())
}

// Reaches says why nothing can be sent to an address that the party told, or
// nil where it can: it is of the other family, or of no single party.
func (s *Session) Reaches(remote netip.Addr) error {
	return udp.Reaches(s.socket.Local().Addr(), remote)
}

// Play makes feed what is sent from the next frame on; nil is silence.
func (s *Session) Play(feed media.Feed) {
	if feed == nil {
		s.feed.Store(nil)
		return
	}
	s.feed.Store(&feed)
}

// Digits yields the keys that the party presses. It is closed by Close.
func (s *Session) Digits() <-chan rune { return s.keys }

// Close ends the session: the reader gets io.EOF, the feed is asked no more
// and the port goes to rest. It may be called twice, but not by a feed or by
// Expired.
func (s *Session) Close() {
	s.close.Do(func() {
		s.detach()
		s.told.Wait()
		close(s.done)
		s.pad.mu.Lock()
		s.pad.closed = true
		close(s.keys)
		s.pad.mu.Unlock()
		s.transport.closed(s)
	})
}

// Tick implements pace.Stream: one frame leaves.
func (s *Session) Tick(due time.Time) {
	p := s.agreed(due)
	if p == nil {
		return
	}
	s.send(p, due)
	// The reader keeps no time of its own. It is woken for what is due, save
	// where a packet has just done so.
	if s.receiver.pushed {
		s.receiver.pushed = false
	} else {
		s.nudge()
	}
	s.watch(p, due.Sub(s.opened))
	s.report(p, due)
}

// agreed returns the parameters of this moment, or nil before Start. It
// belongs to the clock.
func (s *Session) agreed(now time.Time) *terms {
	p := s.params.Load()
	if p != s.receiver.params {
		s.receiver.follow(p, now.Sub(s.opened))
	}
	return p
}

// nudge wakes the reader. Where it is awake already, one wish is enough.
func (s *Session) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// watch notices that the party has been silent for too long.
func (s *Session) watch(p *terms, now time.Duration) {
	r := &s.receiver
	limit := p.Within
	if !r.heard {
		limit = p.FirstWithin
	}
	if limit > 0 && !r.expired && now-r.last > limit && p.Expired != nil {
		r.expired = true
		s.told.Go(p.Expired) // the clock waits for nobody
	}
}
