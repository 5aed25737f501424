// Package webrtctest acts as the browser of web calls, for tests and load generation.
package webrtctest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediaclock"
	"github.com/parley-voice/parley/webrtc/ice"
	"github.com/parley-voice/parley/webrtc/leg"
)

// A Message is a message from the server.
type Message struct {
	Type    string          `json:"type"`
	SDP     string          `json:"sdp"`
	CallID  string          `json:"call_id"`
	Resume  string          `json:"resume"`
	Event   string          `json:"event"`
	State   string          `json:"state"`
	Role    string          `json:"role"`
	Text    string          `json:"text"`
	Final   bool            `json:"final"`
	Turn    json.RawMessage `json:"turn"`
	Reason  string          `json:"reason"`
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Servers []ice.Server    `json:"ice_servers"`
}

// A Browser is a page that joins a call. Audio that Leg plays is the user's speech.
type Browser struct {
	URL       string // URL of the WebSocket
	Token     string
	Connector leg.Connector
	Clock     *mediaclock.Clock

	// Rewrite, if set, changes the SDP of offers and answers in transit, like a middlebox.
	Rewrite func(description string) string

	Leg *leg.Leg

	mu       sync.Mutex
	ws       *websocket.Conn
	messages []Message
	resume   string
	more     chan struct{} // closed and replaced at each message
	tasks    sync.WaitGroup
}

// A RefusedError is an error message from the server.
type RefusedError struct{ Code string }

// Error implements error.
func (r *RefusedError) Error() string { return "refused: " + r.Code }

// Join joins the call with the token.
func (b *Browser) Join(ctx context.Context) error {
	b.more = make(chan struct{})
	return b.join(ctx, map[string]any{"type": "join", "token": b.Token})
}

// Reload joins again like a reloaded page: with a new peer connection and the resume secret of the last answer.
func (b *Browser) Reload(ctx context.Context) error {
	b.Leave()
	if b.Leg != nil {
		_ = b.Leg.Hangup(media.LocalHangup)
	}
	b.mu.Lock()
	secret := b.resume
	b.mu.Unlock()
	return b.join(ctx, map[string]any{"type": "join", "resume": secret})
}

// Leave closes the socket without a bye message. The media continues.
func (b *Browser) Leave() {
	b.mu.Lock()
	ws := b.ws
	b.mu.Unlock()
	if ws != nil {
		_ = ws.Close()
	}
	b.tasks.Wait()
}

// Close closes the socket and the media.
func (b *Browser) Close() {
	b.Leave()
	if b.Leg != nil {
		_ = b.Leg.Hangup(media.LocalHangup)
	}
}

func (b *Browser) join(ctx context.Context, join map[string]any) error {
	l := &leg.Leg{Connector: b.Connector, Clock: b.Clock, LossTimeout: time.Minute}
	if err := l.Open(); err != nil {
		return err
	}
	b.Leg = l
	offer, err := l.CreateOffer(ctx)
	if err != nil {
		return err
	}
	ws, resp, err := websocket.DefaultDialer.DialContext(ctx, b.URL, http.Header{})
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	_ = resp.Body.Close() // an upgrade response has no body
	join["sdp"] = b.rewrite(offer)
	if err := ws.WriteJSON(join); err != nil {
		return errors.Join(err, ws.Close())
	}
	var first Message
	if err := ws.ReadJSON(&first); err != nil {
		return errors.Join(err, ws.Close())
	}
	if first.Type != "answer" {
		return errors.Join(&RefusedError{first.Code}, ws.Close())
	}
	b.mu.Lock()
	b.ws, b.resume = ws, first.Resume
	b.mu.Unlock()
	b.record(first)
	b.tasks.Go(func() { b.listen(ws) })
	if err := l.AcceptAnswer(b.rewrite(first.SDP)); err != nil {
		return err
	}
	return l.WaitConnected(ctx)
}

// Restart performs an ICE restart.
func (b *Browser) Restart(ctx context.Context) error {
	offer, err := b.Leg.CreateRestartOffer(ctx)
	if err != nil {
		return err
	}
	n := len(b.Messages())
	if err = b.Send(map[string]any{"type": "restart", "sdp": b.rewrite(offer)}); err != nil {
		return err
	}
	m, err := b.Wait(ctx, n, func(m Message) bool { return m.Type == "answer" })
	if err != nil {
		return err
	}
	return b.Leg.AcceptAnswer(b.rewrite(m.SDP))
}

func (b *Browser) rewrite(description string) string {
	if b.Rewrite == nil {
		return description
	}
	return b.Rewrite(description)
}

// Send sends a message.
func (b *Browser) Send(v any) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ws.WriteJSON(v)
}

func (b *Browser) listen(ws *websocket.Conn) {
	for {
		var m Message
		if err := ws.ReadJSON(&m); err != nil {
			return
		}
		b.record(m)
	}
}

func (b *Browser) record(m Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages = append(b.messages, m)
	close(b.more)
	b.more = make(chan struct{})
}

// Messages returns all messages from the server.
func (b *Browser) Messages() []Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.messages)
}

// Wait returns the first message for which is returns true. It waits for the message until ctx ends, and ignores the
// messages before index from.
func (b *Browser) Wait(ctx context.Context, from int, is func(Message) bool) (Message, error) {
	for {
		b.mu.Lock()
		more := b.more
		for _, m := range b.messages[min(from, len(b.messages)):] {
			if is(m) {
				b.mu.Unlock()
				return m, nil
			}
		}
		b.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return Message{}, ctx.Err()
		}
	}
}
