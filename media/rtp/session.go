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

// Rate is the rate of the RTP clock of every session, in Hz. It is also the sample rate of narrowband sessions.
const Rate = 8000

const (
	frameLen   = Rate / int(time.Second/media.FrameTime) // in ticks of the RTP clock, and also in bytes for every codec
	maxFrame   = 2 * frameLen                            // in samples, wideband
	keysQueued = 32
)

// Params are the negotiated parameters of a session.
type Params struct {
	// Remote is the address in the SDP. If the remote party sends from another address, media is sent there.
	Remote netip.AddrPort
	// Expected are addresses from which media may come, besides Remote.
	Expected latch.ExpectedSources
	// Codec and PayloadType are used in both directions.
	Codec       codec.Codec
	PayloadType uint8
	// Others are further payload types that the remote party may use in any packet.
	Others []codec.Mapping
	// ComfortType is the payload type of comfort noise; 0 means the static type 13.
	ComfortType uint8
	// LocalKey encrypts sent packets, RemoteKey decrypts received packets, both for RTP and RTCP. If neither is set,
	// nothing is encrypted.
	LocalKey, RemoteKey srtp.Key
	// KeyType is the payload type of telephone events; 0 if it was not negotiated.
	KeyType uint8
	// KeyAlias is another payload type with which telephone events are received; 0 if there is none.
	KeyAlias uint8
	// InBand sends and detects digits as tones in the audio. Without a KeyType, digits are always sent as tones.
	InBand bool
	// Ptime is the packet time that the remote party requests: 10 to 60 ms in steps of 10 ms. 0 means 20 ms.
	Ptime time.Duration
	// RTCP is the remote address for RTCP in the SDP. If it is invalid, the port above that of the audio is used.
	// With Mux, RTCP uses the address of RTP (RFC 5761).
	RTCP netip.AddrPort
	Mux  bool
	// Mute stops sending, because the remote party does not want to receive.
	Mute bool
	// FirstPacketTimeout limits how long the session waits for the first packet. SilenceTimeout limits how long no
	// media may arrive after it. 0 means no limit.
	FirstPacketTimeout, SilenceTimeout time.Duration
	// ReportedTimeout replaces these limits while RTCP still arrives, if it is longer.
	ReportedTimeout time.Duration
	// OnTimeout is called when one of these limits is exceeded, at most once after each Start. It must not call Close,
	// because Close waits for it.
	OnTimeout func()
}

// Session is the RTP media of one call. It implements media.Source, the sending side of media.Leg, and media.Arrival.
// ReadFrame and Arrived must be called from the same goroutine; all other methods may be called from any.
type Session struct {
	transport *Transport
	socket    *udpSocket
	detach    func()
	opened    time.Time // times of type time.Duration count from here

	start    sync.Mutex // held by Start
	params   atomic.Pointer[activeParams]
	feed     atomic.Pointer[media.Feed]
	keys     chan rune
	keyInput keyInput
	dialer   dtmf.Dialer
	done     chan struct{}
	ended    atomic.Bool   // done is closed
	wake     chan struct{} // has room for one wake-up
	reading  atomic.Bool   // ReadFrame has been called
	close    sync.Once
	timeouts sync.WaitGroup // calls of OnTimeout that are running
	count    counters
	in       jitter.Ring

	control    control
	sender     sender           // only the clock uses it
	receiver   incoming         // only the clock uses it
	reader     *receiver.Reader // only the goroutine that reads uses it
	lostFrames int              // number of concealed frames in a row; only the goroutine that reads uses it
}

func newSession(t *Transport, socks pair) *Session {
	s := &Session{
		transport: t,
		socket:    socks.audio,
		opened:    time.Now(),
		keys:      make(chan rune, keysQueued),
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
		s.sendBye() // the clock does not use the session any more
		s.socket.Close()
		s.control.socket.Close()
	}
	return nil
}

// Local returns the address for the SDP.
func (s *Session) Local() netip.AddrPort {
	return netip.AddrPortFrom(s.transport.public, s.socket.Local().Port())
}

// CheckRemote returns an error if media cannot be sent to an address, because it is of another family or not unicast.
func (s *Session) CheckRemote(remote netip.Addr) error {
	return checkReachable(s.socket.Local().Addr(), remote)
}

// Play sets the feed, from the next frame on. With nil, silence is sent.
func (s *Session) Play(feed media.Feed) {
	if feed == nil {
		s.feed.Store(nil)
		return
	}
	s.feed.Store(&feed)
}

// Digits delivers received digits. Close closes the channel.
func (s *Session) Digits() <-chan rune { return s.keys }

// Close ends the session: ReadFrame returns io.EOF, the feed is not called again, and the port becomes free after
// portRest. Close may be called twice, but not by a feed or by OnTimeout.
func (s *Session) Close() {
	s.close.Do(func() {
		s.detach()
		s.timeouts.Wait()
		close(s.done)
		s.ended.Store(true)
		s.wakeReader()
		s.keyInput.mu.Lock()
		s.keyInput.closed = true
		close(s.keys)
		s.keyInput.mu.Unlock()
		s.transport.onClosed(s)
	})
}

// Tick implements mediaclock.Stream. It sends one frame.
func (s *Session) Tick(due time.Time) {
	p := s.currentParams(due)
	if p == nil {
		return
	}
	s.send(p, due)
	// The reader has no timer. Wake it, unless a packet has just woken it.
	if s.receiver.pushed {
		s.receiver.pushed = false
	} else {
		s.wakeReader()
	}
	s.checkTimeout(p, due.Sub(s.opened))
	s.reportIfDue(p, due)
}

// currentParams returns the current parameters, or nil before Start. Only the clock may call it.
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
		return // RTCP shows that the remote party is present
	}
	if limit > 0 && !r.expired && silent > limit && p.OnTimeout != nil {
		r.expired = true
		s.timeouts.Go(p.OnTimeout) // in a goroutine, because it must not block the clock
	}
}
