package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/api"
	"github.com/parley-voice/parley/api/calls"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/place"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/webrtc/ice"
	"github.com/parley-voice/parley/webrtc/signalling"
	"github.com/parley-voice/parley/webrtc/token"
	"github.com/parley-voice/parley/webrtc/turn"
)

// A web is what browsers call through; all are nil where they cannot.
type web struct {
	endpoint *ice.Endpoint
	server   *signalling.Server
	relay    *turn.Server // nil where there is none

	client, talk http.Handler // what browsers load; nil where there is none
}

// openWeb opens the sockets of web calls, at the address that media has.
func (h *house) openWeb(ctx context.Context) error {
	c := h.config.WebRTC
	if c.UDP == config.Off {
		return nil
	}
	if len(c.TURN) > 0 && c.TURNSecret == "" {
		return configError{errors.New("PARLEY_TURN_SECRET: missing, and PARLEY_TURN_URLS is set")}
	}
	bind, public, err := h.config.MediaAddrs()
	if err != nil {
		return configError{err}
	}
	at := ice.Config{UDP: netip.AddrPortFrom(bind, uint16(c.UDP)), Public: public, Log: h.log} //nolint:gosec // a port
	if c.TCP != config.Off {
		at.TCP = netip.AddrPortFrom(bind, uint16(c.TCP)) //nolint:gosec // a port
	}
	if h.web.endpoint, err = ice.Open(ctx, at); err != nil {
		return fmt.Errorf("PARLEY_WEBRTC_UDP_PORT, PARLEY_WEBRTC_TCP_PORT: %w", err)
	}
	key, err := h.store.SharedKey(ctx, "web")
	if err != nil {
		return err
	}
	servers := ice.Servers{STUN: c.STUN, TURN: c.TURN, Secret: c.TURNSecret}
	if c.Relay != config.Off {
		if servers, err = h.openRelay(ctx, at, servers); err != nil {
			return err
		}
	}
	h.web.server = &signalling.Server{
		Calls: h, Connector: h.web.endpoint, Clock: h.clock, Key: key, Log: h.log, Servers: servers,
	}
	return nil
}

// openRelay opens our own TURN server, and adds it to those that browsers are
// told of. Without a secret of the operator's all nodes share one of theirs.
func (h *house) openRelay(ctx context.Context, at ice.Config, servers ice.Servers) (ice.Servers, error) {
	if servers.Secret == "" {
		key, err := h.store.SharedKey(ctx, "turn")
		if err != nil {
			return servers, err
		}
		servers.Secret = media.Secret(hex.EncodeToString(key))
	}
	c := h.config.WebRTC
	var err error
	h.web.relay, err = turn.Open(ctx, turn.Config{
		Addr: netip.AddrPortFrom(at.UDP.Addr(), uint16(c.Relay)), Public: at.Public, //nolint:gosec // a port
		First: uint16(c.RelayPorts[0]), Last: uint16(c.RelayPorts[1]), //nolint:gosec // likewise
		Secret: servers.Secret, Gateway: h.web.endpoint.UDP(), Peers: c.RelayPeers, Log: h.log,
	})
	if err != nil {
		return servers, fmt.Errorf("PARLEY_TURN_PORT: %w", err)
	}
	servers.TURN = append(slices.Clone(servers.TURN), h.web.relay.URLs()...)
	return servers, nil
}

// showWeb lets the API give out tickets.
func (h *house) showWeb(to *calls.Calls) {
	s := h.web.server
	if s == nil {
		return
	}
	to.Tickets = signalling.Tickets{Key: s.Key, Servers: s.Servers, PublicURL: h.publicURL}
	h.desk.Web = &place.Web{
		Room: h.node.Room, Check: h.agent.Check,
		Ticket: func(callID string, now time.Time) place.Ticket {
			c := s.Key.For(callID, now.Add(token.Life))
			return place.Ticket{Hash: c.Hash(), Expires: c.Expires}
		},
	}
}

// beside puts the paths of web calls beside those of the API. Who does not take an
// answer does not hold its connection; a browser's socket has a patience of its own.
func (w *web) beside(rest http.Handler) http.Handler {
	if w.server == nil {
		return api.Patient(rest)
	}
	answers := api.Patient(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { // a ServeMux would clean the API's paths
		if r.URL.Path == signalling.WHIPPath || strings.HasPrefix(r.URL.Path, signalling.WHIPPath+"/") {
			w.server.ServeWHIP(rw, r)
			return
		}
		if p := w.page(r.URL.Path); p != nil {
			p.ServeHTTP(rw, r)
			return
		}
		rest.ServeHTTP(rw, r)
	}))
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/rtc" && r.Method == http.MethodGet {
			w.server.ServeHTTP(rw, r)
			return
		}
		answers.ServeHTTP(rw, r)
	})
}

func (w *web) close() {
	if w.server != nil {
		w.server.Close()
	}
	if w.relay != nil {
		_ = w.relay.Close() // nobody is relayed any more
	}
	if w.endpoint != nil {
		_ = w.endpoint.Close() // nobody calls any more
	}
}

// Begin implements signalling.Calls: a browser has come with its token.
func (h *house) Begin(ctx context.Context, c token.Claims, s *signalling.Session) error {
	if !h.node.Room() {
		return &signalling.RefusedError{Code: signalling.Unavailable, Message: "no more calls are taken now; join again"}
	}
	claim, err := h.store.Join(ctx, c.CallID, c.Hash(), h.node.Place, h.config.Lease)
	if refused, ok := errors.AsType[*control.Error](err); ok {
		code := signalling.Code(refused.Code)
		if refused.Code == control.CodeCallNotFound {
			code = signalling.CallEnded // it was, or it would have no token
		}
		return &signalling.RefusedError{Code: code, Message: refused.Message}
	}
	if err != nil {
		return err
	}
	seat(claim, s)
	if err = h.node.Take(ctx, claim); err != nil {
		end := control.Final{Status: control.Ended, Reason: control.ReasonShutdown, HangupBy: control.SideSystem, EndedAt: time.Now(), Recording: control.RecordingNone}
		brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second) // it ends with its lease otherwise
		defer cancel()
		return errors.Join(err, h.store.Finish(brief, claim.Lease, end))
	}
	return nil
}

// seat has a call be that of a browser which is there already. However the call
// ends, and be it before it is dialled, nobody is left on the line.
func seat(claim *control.Claim, s *signalling.Session) {
	s.Longest = claim.Call.MaxDuration
	claim.Dialer, claim.Watch = joined{s}, told{s}
	claim.Drop = func() { _ = s.Leg.Hangup(media.LocalHangup) } // it never fails
	claim.Over = func(f control.Final) { s.Bye(string(f.Reason)); claim.Drop() }
}

// joinFor is how long the media of a browser that has joined may take to flow.
const joinFor = 20 * time.Second

// joined is the dialer of a call whose browser came by itself.
type joined struct{ session *signalling.Session }

// Dial implements control.Dialer: it waits until media flows.
func (j joined) Dial(ctx context.Context, _ media.Target, _ func(media.Progress)) (media.Leg, error) {
	short, cancel := context.WithTimeout(ctx, joinFor)
	defer cancel()
	l := j.session.Leg
	err := l.Up(short)
	if err == nil {
		return l, nil
	}
	cause := media.NoAnswer
	if ctx.Err() != nil {
		cause = media.Cancelled
	}
	return nil, &media.DialError{Cause: cause, Err: errors.Join(err, l.Hangup(media.LocalHangup))}
}

// told tells a browser what passes in its call.
type told struct{ session *signalling.Session }

// Said implements pipeline.Watcher.
func (t told) Said(l pipeline.Line) {
	if l.Role == pipeline.RoleAgent || l.Role == pipeline.RoleCaller {
		t.session.Transcript(string(l.Role), l.Text, true, l.Turn)
	}
}

// Turned implements pipeline.Watcher.
func (t told) Turned(turn pipeline.Turn) {
	if item, err := json.Marshal(turn); err == nil { // numbers and strings always can be
		t.session.Turn(item)
	}
}

// Stands implements pipeline.Follower.
func (t told) Stands(state string) { t.session.State(state) }

// Saying implements pipeline.Follower.
func (t told) Saying(role pipeline.Role, text string, turn int) {
	t.session.Transcript(string(role), text, false, turn)
}
