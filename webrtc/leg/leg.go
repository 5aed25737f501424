// Package leg is a web call's media: a media.Leg on a peer connection, which may
// be another after the page was loaded anew.
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
	"github.com/parley-voice/parley/media/pace"
	"github.com/parley-voice/parley/media/stream"
)

const (
	// Rate is the sample rate of every web call in Hz.
	Rate = 16000
	// clockRate is that of the RTP clock of what we send, G.722 or G.711.
	clockRate = 8000
)

// patience is how long a leg lives without connectivity once that is known,
// which takes another 4 s.
const patience = 11 * time.Second

// ErrOver is returned by a leg that has ended.
var ErrOver = errors.New("the call is over")

// A Connector makes peer connections; *ice.Endpoint is one.
type Connector interface {
	Connect() (*webrtc.PeerConnection, error)
	// Reaches says whether media may go to an address that a party names.
	Reaches(a netip.Addr) bool
}

// A Leg is one party of a web call: a media.Leg that tells when each frame
// arrived, and how the audio travelled.
type Leg struct {
	Connector Connector
	Clock     *pace.Clock
	Log       *slog.Logger
	// Ready, where set, is told each time that media can flow again.
	Ready func()
	// Patience is how long the leg lives without connectivity; 0 means 11 s.
	Patience time.Duration
	// Consent is how long the party is sent to without an answer to the checks of
	// the connection; 0 means 30 s.
	Consent time.Duration

	opened  time.Time
	in      sync.Mutex // held by who writes receiver
	read    atomic.Bool
	wake    chan struct{} // holds at most one wish to look again
	keys    chan rune
	over    chan struct{} // closed at the end
	up      chan struct{} // closed once media may flow
	hearing *hearing
	reader  *stream.Reader // the reader's
	wire    atomic.Pointer[wire]
	detach  func()
	tasks   tasks

	mu      sync.Mutex
	peer    *peer // the current one
	cause   media.Cause
	isUp    bool
	lost    *time.Timer // nil while connected, and before the first time
	named   allowance   // candidates
	reports reports

	receiver receiver
	sender   sender
}

// Open readies a leg. Nobody is connected to it yet.
func (l *Leg) Open() error {
	h, err := newHearing()
	if err != nil {
		return err
	}
	if l.Log == nil {
		l.Log = slog.New(slog.DiscardHandler)
	}
	l.opened, l.hearing, l.reader = time.Now(), h, stream.NewKept(h)
	l.wake, l.keys = make(chan struct{}, 1), make(chan rune, mostKeys)
	l.over, l.up = make(chan struct{}), make(chan struct{})
	l.sender.init()
	ctx, quit := context.WithCancel(context.Background())
	l.tasks.quit = quit
	l.tasks.Go(func() { l.say(ctx) })
	return nil
}

// Offer answers the offer of a new peer connection, which takes the place of the
// one before. The answer holds all candidates of ours.
func (l *Leg) Offer(ctx context.Context, offer string) (answer string, err error) {
	if err = check(offer); err != nil {
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
		return "", errors.Join(ErrOver, p.pc.Close())
	}
	before := l.peer
	l.peer = p
	l.mu.Unlock()
	if before != nil {
		l.wire.CompareAndSwap(before.wire(), nil)
		if !l.spawn(func() { before.close(l.Log) }) {
			before.close(l.Log)
		}
		l.waits(p)
	}
	return answer, nil
}

// Restart answers an offer of the current peer connection that looks for another
// way (RFC 8445 section 9).
func (l *Leg) Restart(ctx context.Context, offer string) (answer string, err error) {
	if err = check(offer); err != nil {
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

// Candidate takes a candidate of the party; nil is the last. One that cannot be
// used is passed over: another may do.
func (l *Leg) Candidate(c *webrtc.ICECandidateInit) error {
	p, err := l.current()
	if err != nil {
		return err
	}
	if c == nil || c.Candidate == "" {
		c = &webrtc.ICECandidateInit{}
	} else if !p.takes(c.Candidate, time.Now()) {
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
		return nil, ErrOver
	case l.peer == nil:
		return nil, &OfferError{"there is no connection yet"}
	}
	return l.peer, nil
}

// Up waits until media can flow. The leg is a media.Leg from then on.
func (l *Leg) Up(ctx context.Context) error {
	select {
	case <-l.up:
	case <-l.over:
		return ErrOver
	case <-ctx.Done():
		return ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != "" {
		return ErrOver
	}
	if l.detach == nil {
		l.detach = l.Clock.Add(l)
	}
	return nil
}

// Over is closed when the leg has ended.
func (l *Leg) Over() <-chan struct{} { return l.over }

// connected is told by a peer that it is, or is not any more.
func (l *Leg) connected(p *peer, is bool) {
	if l.turned(p, is) && is && l.Ready != nil {
		l.Ready()
	}
}

// turned is false where the peer is not the current one.
func (l *Leg) turned(p *peer, is bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.peer != p || l.cause != "" {
		return false
	}
	if !is {
		l.wire.Store(nil) // what is sent without consent is sent to nobody (RFC 7675)
		if l.isUp {
			l.losing()
		}
		return true
	}
	if l.lost != nil {
		l.lost.Stop()
		l.lost = nil
	}
	if w := p.wire(); w != nil {
		l.wire.Store(w)
	}
	if !l.isUp {
		l.isUp = true
		close(l.up)
	}
	return true
}

// waits begins the patience with a peer that is not connected yet.
func (l *Leg) waits(p *peer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.peer == p && l.isUp && l.wire.Load() == nil {
		l.losing()
	}
}

func (l *Leg) losing() {
	if l.lost != nil {
		return
	}
	wait := l.Patience
	if wait == 0 {
		wait = patience
	}
	l.lost = time.AfterFunc(wait, func() { _ = l.Hangup(media.MediaTimeout) })
}

// Digits implements media.Leg.
func (l *Leg) Digits() <-chan rune { return l.keys }

// Cause implements media.Line.
func (l *Leg) Cause() media.Cause {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// Hangup implements media.Line. It returns when all that the leg began is over,
// save where another call of it is at that. Neither a feed nor the clock may call
// it.
func (l *Leg) Hangup(c media.Cause) error {
	l.mu.Lock()
	if l.cause != "" {
		l.mu.Unlock()
		return nil
	}
	l.cause = c
	if l.lost != nil {
		l.lost.Stop()
	}
	p, detach := l.peer, l.detach
	l.mu.Unlock()
	if detach != nil {
		detach()
	}
	l.wire.Store(nil)
	close(l.over)
	close(l.keys)
	if p != nil {
		p.close(l.Log)
	}
	l.tasks.quit()
	l.tasks.Wait()
	return nil
}

// An OfferError is what is wrong with what the party described.
type OfferError struct{ What string }

// Error implements error.
func (o *OfferError) Error() string { return fmt.Sprintf("the description cannot be used: %s", o.What) }
