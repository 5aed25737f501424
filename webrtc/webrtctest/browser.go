// Package webrtctest plays the browser's part of web calls, for tests and loads.
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
	"github.com/parley-voice/parley/media/pace"
	"github.com/parley-voice/parley/webrtc/ice"
	"github.com/parley-voice/parley/webrtc/leg"
)

// A Message is what the server said.
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

// A Browser is a page that joins a call. Its leg is the user's side: what it
// plays is what the user says.
type Browser struct {
	URL       string // of the socket
	Token     string
	Connector leg.Connector
	Clock     *pace.Clock

	// Way, where set, rewrites descriptions on their way, as where something stands
	// between the two sides.
	Way func(description string) string

	Leg *leg.Leg

	mu     sync.Mutex
	ws     *websocket.Conn
	heard  []Message
	resume string
	more   chan struct{} // closed, and made anew, at each message
	tasks  sync.WaitGroup
}

// A RefusedError is an error that the server told.
type RefusedError struct{ Code string }

// Error implements error.
func (r *RefusedError) Error() string { return "refused: " + r.Code }

// Join joins the call by the token.
func (b *Browser) Join(ctx context.Context) error {
	b.more = make(chan struct{})
	return b.join(ctx, map[string]any{"type": "join", "token": b.Token})
}

// Reload joins again, as a page does that was loaded anew: with other media, by
// what the last answer gave.
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

// Leave closes the socket without a word, and keeps the media.
func (b *Browser) Leave() {
	b.mu.Lock()
	ws := b.ws
	b.mu.Unlock()
	if ws != nil {
		_ = ws.Close()
	}
	b.tasks.Wait()
}

// Close leaves, media and all.
func (b *Browser) Close() {
	b.Leave()
	if b.Leg != nil {
		_ = b.Leg.Hangup(media.LocalHangup)
	}
}

func (b *Browser) join(ctx context.Context, join map[string]any) error {
	l := &leg.Leg{Connector: b.Connector, Clock: b.Clock, Patience: time.Minute}
	if err := l.Open(); err != nil {
		return err
	}
	b.Leg = l
	offer, err := l.Call(ctx)
	if err != nil {
		return err
	}
	ws, resp, err := websocket.DefaultDialer.DialContext(ctx, b.URL, http.Header{})
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	_ = resp.Body.Close() // of an upgrade there is none
	join["sdp"] = b.way(offer)
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
	b.note(first)
	b.tasks.Go(func() { b.listen(ws) })
	if err := l.Accept(b.way(first.SDP)); err != nil {
		return err
	}
	return l.Up(ctx)
}

// Restart looks for another way for the media.
func (b *Browser) Restart(ctx context.Context) error {
	offer, err := b.Leg.CallAgain(ctx)
	if err != nil {
		return err
	}
	n := len(b.Heard())
	if err = b.Send(map[string]any{"type": "restart", "sdp": b.way(offer)}); err != nil {
		return err
	}
	m, err := b.Wait(ctx, n, func(m Message) bool { return m.Type == "answer" })
	if err != nil {
		return err
	}
	return b.Leg.Accept(b.way(m.SDP))
}

func (b *Browser) way(description string) string {
	if b.Way == nil {
		return description
	}
	return b.Way(description)
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
		b.note(m)
	}
}

func (b *Browser) note(m Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard = append(b.heard, m)
	close(b.more)
	b.more = make(chan struct{})
}

// Heard is all that the server said.
func (b *Browser) Heard() []Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.heard)
}

// Wait waits for a message, the from-th or later.
func (b *Browser) Wait(ctx context.Context, from int, is func(Message) bool) (Message, error) {
	for {
		b.mu.Lock()
		more := b.more
		for _, m := range b.heard[min(from, len(b.heard)):] {
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
