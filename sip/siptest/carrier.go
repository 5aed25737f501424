// Package siptest is a scripted carrier: it answers real SIP and RTP by a script
// for each call, and keeps a journal. The demo, benchmarks and tests use it.
package siptest

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediaclock"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/sip/dialog"
	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/leg"
)

// A Carrier accepts calls. Its exported fields must not change after Start.
type Carrier struct {
	// Listen is the SIP address: "127.0.0.1:0".
	Listen string
	// Media carries the audio; nil makes the carrier run a clock and use
	// ephemeral ports.
	Media *rtp.Transport
	// Answer returns the script of a call; nil answers and stays silent until the
	// caller hangs up. It may be called concurrently.
	Answer func(Invite) Script
	// OnInvite and OnRing are called for each INVITE and each first ringing, on
	// the goroutine of the call; nil is skipped.
	OnInvite, OnRing func(Invite)
	// Log receives warnings; nil drops them.
	Log *slog.Logger
	TLS endpoint.TLS
	// MinSession is the shortest session interval accepted; 0 means 90 s.
	MinSession time.Duration
	// OpenSockets opens the sockets; nil opens UDP and TCP sockets.
	OpenSockets func(addr string) (net.PacketConn, net.Listener, error)
	// OptionsStatus is the status for an OPTIONS outside a call; nil means 200.
	// It may be called at any time.
	OptionsStatus func() int
	// Registrar handles registrations; nil refuses them.
	Registrar *Registrar

	endpoint *endpoint.Endpoint
	stop     func() // stops the carrier's own media clock
	journal  journal

	mu       sync.Mutex
	active   atomic.Int64
	answered map[dialog.Key]*call
	ringing  map[string]*call // calls that wait for a PRACK, by Call-ID
	pending  map[string]*call // calls that are answered when a CANCEL arrives, by Call-ID
}

// An Invite describes an INVITE.
type Invite struct {
	ID          string // part of the Call-ID before the @, which is the attempt
	CallID      string
	Branch      string // branch of the topmost Via
	To, From    string // user part of the header; From likewise
	CSeq        uint32
	Source      string // source address
	Transport   string // "UDP" or "TCP"
	Contact     string // value of the header; Via likewise
	Via         string
	Credentials bool           // the INVITE has credentials
	Audio       netip.AddrPort // media address of the offer; may be invalid
	At          time.Time
	// Headers are those that SIP does not require, by name.
	Headers map[string]string
}

// A Script describes what happens to a call.
type Script struct {
	// Silent sends no response.
	Silent bool
	// Challenge asks for credentials first.
	Challenge *Challenge
	// Trying is the delay of a 100, and Ring the time from there to ringing;
	// negative values omit them.
	Trying, Ring time.Duration
	// Rings is the number of 180 responses, RingEvery apart; 0 means one.
	Rings     int
	RingEvery time.Duration
	// EarlyMedia sends 183 with a session description and media instead of 180.
	EarlyMedia bool
	// After is the time from ringing to the final response.
	After time.Duration
	// Status is the final response: 200 answers, 300 and above refuse, 0 rings
	// until the call is canceled.
	Status int
	Reason string
	// Headers are added to the final response.
	Headers map[string]string
	// SDP replaces the session description of the answer.
	SDP []byte
	// Talk runs from the ACK on; then the carrier hangs up. ctx ends with the
	// call. nil waits for the caller to hang up.
	Talk func(ctx context.Context, leg media.Leg)
	// AnswerOnCancel answers when the CANCEL arrives, so that the two cross.
	AnswerOnCancel bool
	// SecondAnswer adds the answer of a second phone.
	SecondAnswer bool
	// Codecs are the accepted codecs, preferred first; empty means all.
	Codecs []string
	// Ptime is the packet time in both directions; 0 means 20 ms.
	Ptime time.Duration
	// MediaRelay replaces the media addresses: it receives both sides' and
	// returns the ones that each side uses instead.
	MediaRelay func(ours, theirs netip.AddrPort) (forThem, forUs netip.AddrPort, err error)
	// NoMedia answers and sends no packets.
	NoMedia bool
	// Reliable sends a reliable 183 with a session description and waits for its
	// PRACK (RFC 3262).
	Reliable bool
	// MinSession answers 422 to a shorter session interval (RFC 4028); 0 accepts
	// all.
	MinSession time.Duration
	// Session is the Session-Expires of the answer (RFC 4028); none if its length
	// is 0.
	Session dialog.SessionExpires
	// NoRefresh does not refresh that session.
	NoRefresh bool
	// Refer describes the result of a REFER; nil refuses it.
	Refer *Refer
	// IgnoreBye sends no response to a BYE.
	IgnoreBye bool
}

// A Challenge asks for credentials.
type Challenge struct {
	Realm     string
	Algorithm string // "MD5" or "SHA-256"; "" omits it, which means MD5
	Username  string // user name; empty accepts no credentials
	Password  media.Secret
	Proxy     bool // challenge with 407 instead of 401
	NoQOP     bool
	Stale     bool // ask for a fresh nonce after the first credentials
}

// A Refer describes the result of a REFER.
type Refer struct {
	// Status answers the REFER; Statuses are reported by NOTIFY, one after the
	// other.
	Status   int
	Statuses []int
	// Hangup ends the call instead of the last NOTIFY.
	Hangup bool
}

// Start opens the sockets and begins to accept calls.
func (c *Carrier) Start() error {
	c.pending, c.ringing, c.answered = map[string]*call{}, map[string]*call{}, map[dialog.Key]*call{}
	c.stop = func() {}
	if c.Media == nil {
		if err := c.startMedia(); err != nil {
			return err
		}
	}
	c.endpoint = &endpoint.Endpoint{
		Listen: c.Listen, Name: "siptest", Log: c.Log, TLS: c.TLS, OpenSockets: c.OpenSockets,
		OnInvite: c.onInvite, OnDatagram: c.onDatagram, OnOther: c.onOther, OptionsStatus: c.optionsStatus,
		IsTrusted: func(netip.Addr) bool { return true }, MaxInbound: math.MaxInt,
	}
	if err := c.endpoint.Start(); err != nil {
		c.stop()
		return err
	}
	return nil
}

func (c *Carrier) startMedia() error {
	host, err := netip.ParseAddrPort(c.Listen)
	if err != nil {
		return err
	}
	ports, err := rtp.ParsePorts("0-0")
	if err != nil {
		return err
	}
	clock := &mediaclock.Clock{}
	transport, err := rtp.NewTransport(clock, ports, host.Addr(), netip.Addr{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { clock.Run(ctx) })
	c.Media = transport
	c.stop = sync.OnceFunc(func() {
		transport.Close()
		cancel()
		running.Wait()
	})
	return nil
}

// Addr returns the SIP address.
func (c *Carrier) Addr() netip.AddrPort { return c.endpoint.Addr() }

// Proxy returns the URI for a trunk's proxy.
func (c *Carrier) Proxy() string { return "sip:" + c.Addr().String() + ";transport=udp" }

// TLSProxy returns the URI for a trunk's proxy over TLS.
func (c *Carrier) TLSProxy() string {
	return "sip:" + c.endpoint.TLSAddr().String() + ";transport=tls"
}

// Calls returns the number of calls in progress.
func (c *Carrier) Calls() int { return int(c.active.Load()) }

// Journal returns all entries, oldest first.
func (c *Carrier) Journal() []Entry { return c.journal.copy() }

// Wait returns when wanted accepts the journal, or with an error when ctx ends.
func (c *Carrier) Wait(ctx context.Context, wanted func([]Entry) bool) error {
	return c.journal.wait(ctx, wanted)
}

// Close hangs up all calls and closes the sockets, within 5 s.
func (c *Carrier) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := c.endpoint.Close(ctx)
	c.stop()
	return err
}

// onDatagram sees a CANCEL before the transaction does, so that the call can be
// answered first.
func (c *Carrier) onDatagram(data []byte) {
	text := string(data[:min(len(data), 2048)])
	if !strings.HasPrefix(text, "CANCEL ") {
		return
	}
	_, rest, ok := strings.Cut(text, "\r\nCall-ID: ")
	id, _, ended := strings.Cut(rest, "\r\n")
	if !ok || !ended {
		return
	}
	c.mu.Lock()
	call := c.pending[id]
	delete(c.pending, id)
	c.mu.Unlock()
	if call == nil {
		return
	}
	close(call.canceling)
	select {
	case <-call.crossed:
	case <-time.After(time.Second):
	}
}

func readInvite(req *sip.Request) Invite {
	in := Invite{
		CallID: string(*req.CallID()), To: req.Recipient.User, From: req.From().Address.User,
		CSeq: req.CSeq().SeqNo, Source: req.Source(), Transport: req.Transport(), At: time.Now(),
		Credentials: req.GetHeader("Authorization") != nil || req.GetHeader("Proxy-Authorization") != nil,
		Headers:     map[string]string{},
	}
	if d, found, err := leg.ReadSDP(req); err == nil && found {
		in.Audio = d.Addr
	}
	in.ID, _, _ = strings.Cut(in.CallID, "@")
	in.Via = req.Via().Value()
	if c := req.Contact(); c != nil {
		in.Contact = c.Value()
	}
	in.Branch, _ = req.Via().Params.Get("branch")
	for _, h := range req.Headers() {
		switch strings.ToLower(h.Name()) {
		case "via", "from", "to", "call-id", "cseq", "contact", "max-forwards", "content-type", "content-length", "allow", "user-agent":
		case "authorization", "proxy-authorization":
		default:
			in.Headers[h.Name()] = h.Value()
		}
	}
	return in
}

var errNoOffer = errors.New("invite without a session description")
