package leg

import (
	"context"
	"errors"
	"fmt"

	"github.com/pion/webrtc/v4"
)

// CreateOffer creates a peer connection and its offer, for a leg that acts as the browser. Pass the answer to
// AcceptAnswer.
func (l *Leg) CreateOffer(ctx context.Context) (offer string, err error) {
	p, err := l.connect()
	if err != nil {
		return "", err
	}
	sender, err := p.pc.AddTrack(p)
	if err != nil {
		return "", errors.Join(fmt.Errorf("track: %w", err), p.pc.Close())
	}
	l.spawn(func() { p.readReports(sender) })
	local, err := p.pc.CreateOffer(nil)
	if err == nil {
		offer, err = p.describe(ctx, local)
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

// CreateRestartOffer creates an ICE restart offer for the current peer connection.
func (l *Leg) CreateRestartOffer(ctx context.Context) (offer string, err error) {
	p, err := l.current()
	if err != nil {
		return "", err
	}
	local, err := p.pc.CreateOffer(&webrtc.OfferOptions{ICERestart: true})
	if err != nil {
		return "", fmt.Errorf("offer: %w", err)
	}
	return p.describe(ctx, local)
}

// AcceptAnswer applies the answer to an offer of CreateOffer or CreateRestartOffer.
func (l *Leg) AcceptAnswer(answer string) error {
	p, err := l.current()
	if err != nil {
		return err
	}
	if err := p.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer}); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}
