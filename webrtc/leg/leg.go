// Package leg implements a media.Leg on a WebRTC peer connection. The peer connection may be replaced during the call,
// for example after a page reload.
package leg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/webrtc/v4"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediaclock"
	"github.com/parley-voice/parley/media/receiver"
)

const (
	// Rate is the sample rate of every web call in Hz.
	Rate = 16000
	// clockRate is the RTP clock rate of sent audio in Hz (G.722 or G.711).
	clockRate = 8000
)

// lossTimeout is how long a leg waits for a new connection after ICE has detected the loss. The detection takes 4 s.
const lossTimeout = 11 * time.Second

// ErrEnded means that the leg has ended.
var ErrEnded = errors.New("the call is over")

// A Connector creates peer connections; *ice.Endpoint implements it.
type Connector interface {
	Connect() (*webrtc.PeerConnection, error)
	// CanReach reports whether media may be sent to the address of a remote candidate.
	CanReach(a netip.Addr) bool
}

// A Leg is one party of a web call. It implements media.Leg, media.Arrival and media.QualityReporter.
type Leg struct {
	Connector Connector
	Clock     *mediaclock.Clock
	Log       *slog.Logger
	// OnConnected is called each time the current peer connection becomes connected; nil disables it.
	OnConnected func()
	// LossTimeout is how long the leg waits for a new connection after a loss; 0 means 11 s.
	LossTimeout time.Duration
	// ConsentTimeout is how long media is sent without answers to connectivity checks; 0 means 30 s.
	ConsentTimeout time.Duration

	opened        time.Time
	receiveMu     sync.Mutex // held to write receiver
	reading       atomic.Bool
	wake          chan struct{} // holds at most one wake-up
	keys          chan rune
	done          chan struct{} // closed when the leg ends
	connectedOnce chan struct{} // closed when media can first flow
	decoders      *decoders
	reader        *receiver.Reader // only the goroutine that calls ReadFrame uses it
	out           atomic.Pointer[outTrack]
	detach        func()
	tasks         tasks

	mu           sync.Mutex
	peer         *peer // current peer connection
	cause        media.Cause
	wasConnected bool
	lossTimer    *time.Timer // nil while connected, and before the first connection
	candidates   candidateBudget
	reports      reports

	receiver stream
	sender   sender
}

// Open initializes the leg, without a connection. It must be called before all other methods.
func (l *Leg) Open() error {
	h, err := newDecoders()
	if err != nil {
		return err
	}
	if l.Log == nil {
		l.Log = slog.New(slog.DiscardHandler)
	}
	l.opened, l.decoders, l.reader = time.Now(), h, receiver.NewWithStore(h)
	l.wake, l.keys = make(chan struct{}, 1), make(chan rune, maxKeys)
	l.done, l.connectedOnce = make(chan struct{}), make(chan struct{})
	l.sender.init()
	ctx, quit := context.WithCancel(context.Background())
	l.tasks.quit = quit
	l.tasks.Go(func() { l.sendLoop(ctx) })
	return nil
}

// AnswerOffer answers the offer of a new peer connection, which replaces the previous one. The answer contains all
// local candidates.
func (l *Leg) AnswerOffer(ctx context.Context, offer string) (answer string, err error) {
	if err = checkOffer(offer); err != nil {
		return "", err
	}
	p, err := l.connect()
	if err != nil {
		return "", err
	}
	answer, err = p.answer(ctx, offer)
	if err != nil {
		return "", errors.Join(err, p.pc.Close())
	}
	l.mu.Lock()
	if l.cause != "" {
		l.mu.Unlock()
		return "", errors.Join(ErrEnded, p.pc.Close())
	}
	before := l.peer
	l.peer = p
	l.mu.Unlock()
	if before != nil {
		l.out.CompareAndSwap(before.out.Load(), nil)
		if !l.spawn(func() { before.close(l.Log) }) {
			before.close(l.Log)
		}
		l.startLossTimerFor(p)
	}
	return answer, nil
}

// AnswerRestart answers an ICE restart offer of the current peer connection (RFC 8445 section 9).
func (l *Leg) AnswerRestart(ctx context.Context, offer string) (answer string, err error) {
	if err = checkOffer(offer); err != nil {
		return "", err
	}
	p, err := l.current()
	if err != nil {
		return "", err
	}
	if now := p.pc.RemoteDescription(); now != nil && fingerprint(now.SDP) != fingerprint(offer) {
		return "", &OfferError{"the offer of a restart has the fingerprint of another connection"}
	}
	return p.answer(ctx, offer)
}

// AddCandidate adds a remote candidate. nil means that no more candidates follow. AddCandidate ignores a candidate that
// cannot be used.
func (l *Leg) AddCandidate(c *webrtc.ICECandidateInit) error {
	p, err := l.current()
	if err != nil {
		return err
	}
	if c == nil || c.Candidate == "" {
		c = &webrtc.ICECandidateInit{}
	} else if !p.accepts(c.Candidate, time.Now()) {
		return nil
	}
	if err := p.pc.AddICECandidate(*c); err != nil {
		l.Log.Debug("candidate", "err", err)
	}
	return nil
}

func (l *Leg) current() (*peer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.cause != "":
		return nil, ErrEnded
	case l.peer == nil:
		return nil, &OfferError{"no connection yet"}
	}
	return l.peer, nil
}

// WaitConnected waits until media can flow. After that, the leg can be used as a media.Leg.
func (l *Leg) WaitConnected(ctx context.Context) error {
	select {
	case <-l.connectedOnce:
	case <-l.done:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != "" {
		return ErrEnded
	}
	if l.detach == nil {
		l.detach = l.Clock.Add(l)
	}
	return nil
}

// Done is closed when the leg has ended.
func (l *Leg) Done() <-chan struct{} { return l.done }

func (l *Leg) onConnection(p *peer, connected bool) {
	if l.setConnected(p, connected) && connected && l.OnConnected != nil {
		l.OnConnected()
	}
}

// setConnected returns false if p is not the current peer.
func (l *Leg) setConnected(p *peer, connected bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.peer != p || l.cause != "" {
		return false
	}
	if !connected {
		l.out.Store(nil) // without consent nothing may be sent (RFC 7675)
		if l.wasConnected {
			l.startLossTimer()
		}
		return true
	}
	if l.lossTimer != nil {
		l.lossTimer.Stop()
		l.lossTimer = nil
	}
	if w := p.out.Load(); w != nil {
		l.out.Store(w)
	}
	if !l.wasConnected {
		l.wasConnected = true
		close(l.connectedOnce)
	}
	return true
}

// startLossTimerFor starts the loss timer if p is current and not connected.
func (l *Leg) startLossTimerFor(p *peer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.peer == p && l.wasConnected && l.out.Load() == nil {
		l.startLossTimer()
	}
}

func (l *Leg) startLossTimer() {
	if l.lossTimer != nil {
		return
	}
	wait := l.LossTimeout
	if wait == 0 {
		wait = lossTimeout
	}
	l.lossTimer = time.AfterFunc(wait, func() { _ = l.Hangup(media.MediaTimeout) })
}

// Digits implements media.Leg.
func (l *Leg) Digits() <-chan rune { return l.keys }

// Cause implements media.Connection.
func (l *Leg) Cause() media.Cause {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// Hangup implements media.Connection. It returns when all goroutines of the leg have ended; further calls return at
// once. A feed or the clock must not call it.
func (l *Leg) Hangup(c media.Cause) error {
	l.mu.Lock()
	if l.cause != "" {
		l.mu.Unlock()
		return nil
	}
	l.cause = c
	if l.lossTimer != nil {
		l.lossTimer.Stop()
	}
	p, detach := l.peer, l.detach
	l.mu.Unlock()
	if detach != nil {
		detach()
	}
	l.out.Store(nil)
	close(l.done)
	close(l.keys)
	if p != nil {
		p.close(l.Log)
	}
	l.tasks.quit()
	l.tasks.Wait()
	return nil
}

// An OfferError reports an unusable session description.
type OfferError struct{ Reason string }

// Error implements error.
func (o *OfferError) Error() string {
	return fmt.Sprintf("the SDP cannot be used: %s", o.Reason)
}
