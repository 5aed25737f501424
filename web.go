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
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/webrtc/ice"
	"github.com/parley-voice/parley/webrtc/signaling"
	"github.com/parley-voice/parley/webrtc/turnserver"
)

// web serves web calls. Every field is nil if PARLEY_WEBRTC_UDP_PORT is off.
type web struct {
	endpoint *ice.Endpoint
	server   *signaling.Server
	relay    *turnserver.Server // nil if the relay is off

	client, talk http.Handler // pages and scripts; nil if the dashboard and /talk are off
}

// openWeb opens the sockets of web calls on the media address.
func (srv *server) openWeb(ctx context.Context) error {
	c := srv.config.WebRTC
	if c.UDP == config.Off {
		return nil
	}
	if len(c.TURN) > 0 && c.TURNSecret == "" {
		return configError{errors.New("PARLEY_TURN_SECRET: missing; PARLEY_TURN_URLS requires it")}
	}
	bind, public, err := srv.config.MediaAddrs()
	if err != nil {
		return configError{err}
	}
	at := ice.Config{UDP: netip.AddrPortFrom(bind, uint16(c.UDP)), Public: public, Log: srv.log} //nolint:gosec // a port
	if c.TCP != config.Off {
		at.TCP = netip.AddrPortFrom(bind, uint16(c.TCP)) //nolint:gosec // a port
	}
	if srv.web.endpoint, err = ice.Open(ctx, at); err != nil {
		return fmt.Errorf("PARLEY_WEBRTC_UDP_PORT, PARLEY_WEBRTC_TCP_PORT: %w", err)
	}
	key, err := store.SharedKey(ctx, srv.db.Pool, "web")
	if err != nil {
		return err
	}
	servers := ice.Servers{STUN: c.STUN, TURN: c.TURN, Secret: c.TURNSecret}
	if c.Relay != config.Off {
		if servers, err = srv.openRelay(ctx, at, servers); err != nil {
			return err
		}
	}
	srv.web.server = &signaling.Server{
		Calls: srv, Connector: srv.web.endpoint, Clock: srv.clock, Key: key, Log: srv.log, Servers: servers,
	}
	return nil
}

// openRelay opens the built-in TURN server and returns servers with it added. If the operator set no secret, all nodes
// share a generated secret.
func (srv *server) openRelay(ctx context.Context, at ice.Config, servers ice.Servers) (ice.Servers, error) {
	if servers.Secret == "" {
		key, err := store.SharedKey(ctx, srv.db.Pool, "turn")
		if err != nil {
			return servers, err
		}
		servers.Secret = media.Secret(hex.EncodeToString(key))
	}
	c := srv.config.WebRTC
	var err error
	srv.web.relay, err = turnserver.Open(ctx, turnserver.Config{
		Addr: netip.AddrPortFrom(at.UDP.Addr(), uint16(c.Relay)), Public: at.Public, //nolint:gosec // a port
		First: uint16(c.RelayPorts[0]), Last: uint16(c.RelayPorts[1]), //nolint:gosec // likewise
		Secret: servers.Secret, Gateway: srv.web.endpoint.UDP(), Peers: c.RelayPeers, Log: srv.log,
	})
	if err != nil {
		return servers, fmt.Errorf("PARLEY_TURN_PORT: %w", err)
	}
	servers.TURN = append(slices.Clone(servers.TURN), srv.web.relay.URLs()...)
	return servers, nil
}

// addWebCalls adds the endpoints that create web calls to the API.
func (srv *server) addWebCalls(to *calls.Calls) {
	s := srv.web.server
	if s == nil {
		return
	}
	to.Tickets = signaling.Tickets{Key: s.Key, Servers: s.Servers, PublicURL: srv.publicURL}
	srv.admission.Web = &admission.WebCalls{
		HasCapacity: srv.node.HasCapacity, Check: srv.agent.Check,
		Ticket: func(callID string, now time.Time) admission.Ticket {
			c := s.Key.NewClaims(callID, now.Add(signaling.TokenLifetime))
			return admission.Ticket{Hash: c.Hash(), Expires: c.Expires}
		},
	}
}

// route passes requests of web calls to their handlers, and all other requests to rest. api.WithWriteDeadline
// disconnects slow readers of responses. WebSockets have their own deadlines.
func (w *web) route(rest http.Handler) http.Handler {
	if w.server == nil {
		return api.WithWriteDeadline(rest)
	}
	answers := api.WithWriteDeadline(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { // a ServeMux would clean the API's paths
		if r.URL.Path == signaling.WHIPPath || strings.HasPrefix(r.URL.Path, signaling.WHIPPath+"/") {
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
		_ = w.relay.Close() // no call is left
	}
	if w.endpoint != nil {
		_ = w.endpoint.Close() // no call is left
	}
}

// Begin implements signaling.Calls. It starts the call of a browser's token.
func (srv *server) Begin(ctx context.Context, c signaling.Claims, s *signaling.Session) error {
	if !srv.node.HasCapacity() {
		return &signaling.RefusedError{Code: signaling.Unavailable, Message: "the server takes no new calls; join again"}
	}
	claim, err := srv.store.Join(ctx, c.CallID, c.Hash(), srv.node.ID, srv.config.Lease)
	if refused, ok := errors.AsType[*control.Error](err); ok {
		code := signaling.Code(refused.Code)
		if refused.Code == control.CodeCallNotFound {
			code = signaling.CallEnded // a token exists only for a call that existed
		}
		return &signaling.RefusedError{Code: code, Message: refused.Message}
	}
	if err != nil {
		return err
	}
	attachBrowser(claim, s)
	if err = srv.node.Take(ctx, claim); err != nil {
		end := control.CallResult{
			Status: control.Ended, Reason: control.ReasonShutdown, HangupBy: control.SideSystem, EndedAt: time.Now(),
			Recording: control.RecordingNone,
		}
		brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second) // on an error the call ends when its lease expires
		defer cancel()
		return errors.Join(err, srv.store.Finish(brief, claim.Lease, end))
	}
	return nil
}

// attachBrowser makes s the media leg of a claimed call. The leg is hung up at every end of the call, even at an end
// before dialing.
func attachBrowser(claim *control.Claim, s *signaling.Session) {
	s.MaxDuration = claim.Call.MaxDuration
	claim.Dialer, claim.Watcher = browserDialer{s}, browserWatcher{s}
	claim.Session.Typed = s.Texts()
	claim.HangUp = func() { _ = s.Leg.Hangup(media.LocalHangup) } // Hangup returns no error
	claim.OnEnd = func(f control.CallResult) { s.Bye(string(f.Reason)); claim.HangUp() }
}

// joinFor is the maximum time from the join to the first media.
const joinFor = 20 * time.Second

// browserDialer implements control.Dialer for a web call, whose browser has already joined.
type browserDialer struct{ session *signaling.Session }

// Dial implements control.Dialer. It waits until media flows.
func (j browserDialer) Dial(ctx context.Context, _ media.Target, _ func(media.Progress)) (media.Leg, error) {
	short, cancel := context.WithTimeout(ctx, joinFor)
	defer cancel()
	l := j.session.Leg
	err := l.WaitConnected(short)
	if err == nil {
		return l, nil
	}
	cause := media.NoAnswer
	if ctx.Err() != nil {
		cause = media.Canceled
	}
	return nil, &media.DialError{Cause: cause, Err: errors.Join(err, l.Hangup(media.LocalHangup))}
}

// browserWatcher sends the events of a call to its browser.
type browserWatcher struct{ session *signaling.Session }

// OnLine implements pipeline.Observer.
func (t browserWatcher) OnLine(l pipeline.Line) {
	if l.Role == pipeline.RoleAgent || l.Role == pipeline.RoleCaller {
		t.session.Transcript(string(l.Role), l.Text, true, l.Turn)
	}
}

// OnTurn implements pipeline.Observer.
func (t browserWatcher) OnTurn(turn pipeline.Turn) {
	if item, err := json.Marshal(turn); err == nil { // encoding cannot fail: a turn has only numbers and strings
		t.session.Turn(item)
	}
}

// OnState implements pipeline.StateObserver.
func (t browserWatcher) OnState(state string) { t.session.State(state) }

// OnPartial implements pipeline.StateObserver.
func (t browserWatcher) OnPartial(role pipeline.Role, text string, turn int) {
	t.session.Transcript(string(role), text, false, turn)
}
