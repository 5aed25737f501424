package leg

import (
	"context"
	"errors"
	"fmt"

	"github.com/pion/webrtc/v4"
)

// Call makes the offer of a new peer connection, for a leg that plays the
// browser's part. Accept takes the answer.
func (l *Leg) Call(ctx context.Context) (offer string, err error) {
	p, err := l.connect()
	if err != nil {
		return "", err
	}
	sender, err := p.pc.AddTrack(p)
	if err != nil {
		return "", errors.Join(fmt.Errorf("track: %w", err), p.pc.Close())
	}
	l.spawn(func() { p.reports(sender) })
	ours, err := p.pc.CreateOffer(nil)
	if err == nil {
		offer, err = p.describe(ctx, ours)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("offer: %w", err), p.pc.Close())
	}
	l.mu.Lock()
	before := l.peer
	l.peer = p
	l.mu.Unlock()
	if before != nil {
		before.close(l.Log)
	}
	return offer, nil
}

// CallAgain makes an offer of the current peer connection that looks for another
// way.
func (l *Leg) CallAgain(ctx context.Context) (offer string, err error) {
	p, err := l.current()
	if err != nil {
		return "", err
	}
	ours, err := p.pc.CreateOffer(&webrtc.OfferOptions{ICERestart: true})
	if err != nil {
		return "", fmt.Errorf("offer: %w", err)
	}
	return p.describe(ctx, ours)
}

// Accept takes the answer to the offer of Call or CallAgain.
func (l *Leg) Accept(answer string) error {
	p, err := l.current()
	if err != nil {
		return err
	}
	if err := p.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer}); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}
