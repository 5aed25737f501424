package rtp

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/dtmf"
	"github.com/parley-voice/parley/media/jitter"
	"github.com/parley-voice/parley/media/latch"
	"github.com/parley-voice/parley/media/receiver"
	"github.com/parley-voice/parley/media/srtp"
)

// Rate is the RTP clock rate of every session in Hz, and the sample rate of
// narrowband sessions.
const Rate = 8000

const (
	frameLen   = Rate / int(time.Second/media.FrameTime) // RTP clock ticks, and bytes of any codec
	maxFrame   = 2 * frameLen                            // samples, wideband
	keysQueued = 32
)

// Params are the negotiated parameters of a session.
type Params struct {
	// Remote is the SDP address. If the remote party sends from another
	// address, media is sent there instead.
	Remote netip.AddrPort
	// Expected are source addresses in addition to Remote.
	Expected latch.ExpectedSources
	// Codec and PayloadType apply to both directions.
	Codec       codec.Codec
	PayloadType uint8
	// Others are further payload types that the remote party may switch to at
	// any packet.
	Others []codec.Mapping
	// ComfortType is the payload type of comfort noise; 0 means the static
	// one.
	ComfortType uint8
	// LocalKey and RemoteKey encrypt RTP and RTCP, sent and received. If they
	// are not set, nothing is encrypted.
	LocalKey, RemoteKey srtp.Key
	// KeyType is the payload type of telephone events; 0 if not negotiated.
	KeyType uint8
	// KeyAlias is a further payload type of received telephone events; 0 if
	// none.
	KeyAlias uint8
	// InBand sends and detects DTMF as tones in the audio. Without a KeyType
	// digits are always sent as tones.
	InBand bool
	// Ptime is the packet time that the remote party wants, 10 to 60 ms in
	// steps of 10; 0 means 20 ms.
	Ptime time.Duration
	// RTCP is the remote address of RTCP from SDP; if invalid, the port above
	// the audio's. With Mux RTCP shares the RTP address (RFC 5761).
	RTCP netip.AddrPort
	Mux  bool
	// Mute stops sending, because the remote party does not want to receive.
	Mute bool
	// FirstPacketTimeout and SilenceTimeout limit how long no media may
	// arrive: before the first packet and later. 0 means no limit.
	FirstPacketTimeout, SilenceTimeout time.Duration
	// ReportedTimeout is the limit while RTCP still arrives, if longer.
	ReportedTimeout time.Duration
	// OnTimeout is called once when a timeout has passed, on a goroutine that
	// Close waits for: it must not call Close itself.
	OnTimeout func()
}

// A Session is the RTP media of one call: a media.Source, the sending side of
// a media.Leg, and a media.Arrival. ReadFrame and Arrived belong to one
// goroutine; all other methods may be called from any.
type Session struct {
	transport *Transport
	socket    *udpSocket
	detach    func()
	opened    time.Time // zero of the session's time

	start    sync.Mutex // held by Start
	params   atomic.Pointer[activeParams]
	feed     atomic.Pointer[media.Feed]
	keys     chan rune
	keyInput keyInput
	dialer   *dtmf.Dialer
	done     chan struct{}
	wake     chan struct{} // holds at most one wake-up
	reading  atomic.Bool   // ReadFrame was called
	close    sync.Once
	timeouts sync.WaitGroup // running OnTimeout calls
	count    counters
	in       jitter.Ring

	control    control
	sender     sender           // owned by the clock
	receiver   incoming         // owned by the clock
	reader     *receiver.Reader // owned by the reading goroutine
	lostFrames int              // consecutive concealed frames; owned by the reading goroutine
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
	s.reader = receiver.New()
	return s
}

func (s *Session) attach() error {
	removeRTP, err := s.transport.poll.add(s.socket, s)
	if err != nil {
		return err
	}
	removeRTCP, err := s.transport.poll.add(s.control.socket, reports{s})
	if err != nil {
		removeRTP()
		return fmt.Errorf("reports: %w", err)
	}
	removeStream := s.transport.clock.AddSplit(s, midframe{s})
	s.detach = func() {
		removeStream()
		removeRTP()
		removeRTCP()
		s.sendBye() // the clock does not use the session anymore
		s.socket.Close()
		s.control.socket.Close()
	}
	return nil
}

// Local returns the address to offer in SDP.
func (s *Session) Local() netip.AddrPort {
	return netip.AddrPortFrom(s.transport.public, s.socket.Local().Port())
}

// CheckRemote returns an error if media cannot be sent to an SDP address: it
// has another family or is not unicast.
func (s *Session) CheckRemote(remote netip.Addr) error {
	return checkReachable(s.socket.Local().Addr(), remote)
}

// Play sets the feed from the next frame on; nil means silence.
func (s *Session) Play(feed media.Feed) {
	if feed == nil {
		s.feed.Store(nil)
		return
	}
	s.feed.Store(&feed)
}

// Digits yields received digits. Close closes it.
func (s *Session) Digits() <-chan rune { return s.keys }

// Close ends the session: ReadFrame returns io.EOF, the feed is not called
// again, and the port rests. It may be called twice, but not by a feed or
// OnTimeout.
func (s *Session) Close() {
	s.close.Do(func() {
		s.detach()
		s.timeouts.Wait()
		close(s.done)
		s.keyInput.mu.Lock()
		s.keyInput.closed = true
		close(s.keys)
		s.keyInput.mu.Unlock()
		s.transport.onClosed(s)
	})
}

// Tick implements mediaclock.Stream: it sends one frame.
func (s *Session) Tick(due time.Time) {
	p := s.currentParams(due)
	if p == nil {
		return
	}
	s.send(p, due)
	// The reader has no timer. Wake it unless a packet has just done so.
	if s.receiver.pushed {
		s.receiver.pushed = false
	} else {
		s.wakeReader()
	}
	s.checkTimeout(p, due.Sub(s.opened))
	s.reportIfDue(p, due)
}

// currentParams returns the current parameters, or nil before Start. It
// belongs to the clock.
func (s *Session) currentParams(now time.Time) *activeParams {
	p := s.params.Load()
	if p != s.receiver.params {
		s.receiver.update(p, now.Sub(s.opened))
	}
	return p
}

func (s *Session) wakeReader() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Session) checkTimeout(p *activeParams, now time.Duration) {
	r := &s.receiver
	limit := p.SilenceTimeout
	if !r.started {
		limit = p.FirstPacketTimeout
	}
	silent := now - r.last
	if silent <= p.ReportedTimeout && r.reportedAt > 0 && now-r.reportedAt <= limit {
		return // RTCP proves that the remote party is present
	}
	if limit > 0 && !r.expired && silent > limit && p.OnTimeout != nil {
		r.expired = true
		s.timeouts.Go(p.OnTimeout) // must not block the clock
	}
}
