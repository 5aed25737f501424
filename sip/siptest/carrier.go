// Package siptest is a carrier that does as it is told: it answers real SIP
// and RTP by a script for each call, and keeps a journal of what it was sent.
// Demonstrations, benchmarks and tests call it.
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
	"github.com/parley-voice/parley/media/pace"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/sip/dialog"
	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/leg"
	"github.com/parley-voice/parley/sip/timer"
)

// A Carrier takes calls. The exported fields are its wiring and must not
// change after Start.
type Carrier struct {
	// Listen is where SIP is spoken: "127.0.0.1:0".
	Listen string
	// Media carries the audio; nil has the carrier run a clock and use
	// ephemeral ports of its own.
	Media *rtp.Transport
	// Answer says what to do with a call; nil answers and keeps silent until
	// the caller hangs up. It may be called for several calls at once.
	Answer func(Invite) Script
	// OnInvite and OnRing, where set, are told of each INVITE and each first
	// ring as they happen, in the goroutine of the call.
	OnInvite, OnRing func(Invite)
	// Log takes warnings; nil drops them.
	Log *slog.Logger
	// Secure is how TLS is spoken.
	Secure endpoint.Secure
	// LeastSession is the shortest session interval that is taken; 0 is 90 s.
	LeastSession time.Duration
	// Sockets opens what is listened on; nil opens UDP and TCP sockets.
	Sockets func(addr string) (net.PacketConn, net.Listener, error)
	// Ping is the status that an OPTIONS outside a call is answered with; 0 is
	// 200. It may be called at any time.
	Ping func() int
	// Registrar takes registrations; nil takes none.
	Registrar *Registrar

	endpoint *endpoint.Endpoint
	stop     func() // of our own clock
	journal  journal

	mu      sync.Mutex
	up      atomic.Int64
	upCalls map[dialog.Key]*call
	ringing map[string]*call // by Call-ID, those that wait for a PRACK
	pending map[string]*call // by Call-ID, those that answer a CANCEL
}

// An Invite is a call as the carrier sees it.
type Invite struct {
	ID          string // stem of the Call-ID: the attempt
	CallID      string
	Branch      string // of the topmost Via: the same for retransmissions
	To, From    string // user parts
	CSeq        uint32
	Source      string // address it came from
	Transport   string // "UDP" or "TCP"
	Contact     string // and the topmost Via
	Via         string
	Credentials bool           // it answers a challenge
	Audio       netip.AddrPort // where the caller wants to hear; invalid where it does not say
	At          time.Time
	// Headers are those with a name of the caller's own, by name.
	Headers map[string]string
}

// A Script is what happens to a call.
type Script struct {
	// Silent never says a word, not even that the call was received.
	Silent bool
	// Challenge asks for credentials before anything else.
	Challenge *Challenge
	// Trying is how long until a 100, Ring from there until the phone rings;
	// less than zero leaves it out. Where both are zero the phone rings at once.
	Trying, Ring time.Duration
	// Rings is how often ringing is told, RingEvery apart; 0 is once.
	Rings     int
	RingEvery time.Duration
	// EarlyMedia tells it with a session description and sends from then on.
	EarlyMedia bool
	// After is how long from then until the final answer.
	After time.Duration
	// Status is the final answer: 200 takes the call, 300 and more refuse it,
	// and 0 lets it ring until it is cancelled.
	Status int
	Reason string
	// Headers are added to the final answer.
	Headers map[string]string
	// SDP is sent instead of a session description of ours.
	SDP []byte
	// Talk is the call, from the ACK on. When it returns the carrier hangs up.
	// ctx ends when the call does. Nil waits for the caller to hang up.
	Talk func(ctx context.Context, leg media.Leg)
	// AnswerOnCancel takes the call at the very moment at which it is
	// cancelled, so that answer and CANCEL cross.
	AnswerOnCancel bool
	// SecondAnswer has another phone answer as well.
	SecondAnswer bool
	// Codecs are what the phone speaks, the preferred first; empty is all that
	// there are.
	Codecs []string
	// Ptime is how much audio is in a packet, both ways; 0 is 20 ms.
	Ptime time.Duration
	// Through, where set, puts something between the two sides' audio: it is
	// given where each listens, and returns what each is told instead.
	Through func(ours, theirs netip.AddrPort) (toldThem, toldUs netip.AddrPort, err error)
	// NoMedia takes the call and never sends a packet.
	NoMedia bool
	// Reliable tells a reliable response before the phone rings: 183 with a
	// session description, which waits for its PRACK (RFC 3262).
	Reliable bool
	// Small refuses the session interval that is asked for once, and wants this
	// one (RFC 4028).
	Small time.Duration
	// Session is the Session-Expires of the answer (RFC 4028); none where its
	// length is 0.
	Session timer.Interval
	// Lapses leaves the refreshing of that session undone.
	Lapses bool
	// Refer says what becomes of a REFER; nil refuses it.
	Refer *Refer
	// IgnoreBye leaves a BYE without a response.
	IgnoreBye bool
}

// A Challenge asks for credentials.
type Challenge struct {
	Realm     string
	Algorithm string // "MD5" or "SHA-256"; "" leaves it out, which means MD5
	Username  string // where empty, none are good enough
	Password  media.Secret
	Proxy     bool // 407 instead of 401
	NoQOP     bool
	Stale     bool // the first credentials are answered with a fresh nonce
}

// A Refer is what becomes of a REFER.
type Refer struct {
	// Status answers the REFER itself, and Notices tell what its target
	// answered, one after the other.
	Status  int
	Notices []int
	// Hangup ends the call instead of the last notice.
	Hangup bool
}

// Start opens the sockets and takes calls from then on.
func (c *Carrier) Start() error {
	c.pending, c.ringing, c.upCalls = map[string]*call{}, map[string]*call{}, map[dialog.Key]*call{}
	c.stop = func() {}
	if c.Media == nil {
		if err := c.ownMedia(); err != nil {
			return err
		}
	}
	c.endpoint = &endpoint.Endpoint{
		Listen: c.Listen, Name: "siptest", Log: c.Log, Secure: c.Secure, Sockets: c.Sockets,
		Invite: c.invite, Before: c.before, Other: c.other, Options: c.options,
		Trusted: func(netip.Addr) bool { return true }, MaxInbound: math.MaxInt,
	}
	if err := c.endpoint.Start(); err != nil {
		c.stop()
		return err
	}
	return nil
}

func (c *Carrier) ownMedia() error {
	host, err := netip.ParseAddrPort(c.Listen)
	if err != nil {
		return err
	}
	ports, err := rtp.ParsePorts("0-0")
	if err != nil {
		return err
	}
	clock := &pace.Clock{}
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

// Addr is where the carrier listens.
func (c *Carrier) Addr() netip.AddrPort { return c.endpoint.Addr() }

// Proxy is the carrier as a trunk's proxy.
func (c *Carrier) Proxy() string { return "sip:" + c.Addr().String() + ";transport=udp" }

// SecureProxy is the carrier as a trunk's proxy over TLS.
func (c *Carrier) SecureProxy() string {
	return "sip:" + c.endpoint.SecureAddr().String() + ";transport=tls"
}

// Calls is how many calls are up.
func (c *Carrier) Calls() int { return int(c.up.Load()) }

// Journal is what the carrier was sent so far, oldest first.
func (c *Carrier) Journal() []Entry { return c.journal.copy() }

// Wait returns once the journal is as wanted, or with an error when ctx ends.
func (c *Carrier) Wait(ctx context.Context, wanted func([]Entry) bool) error {
	return c.journal.wait(ctx, wanted)
}

// Close hangs up every call and closes the sockets, in 5 s at most.
func (c *Carrier) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := c.endpoint.Close(ctx)
	c.stop()
	return err
}

// before sees a CANCEL before the transaction does, so that a call can be
// answered first.
func (c *Carrier) before(data []byte) {
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
	close(call.cancelling)
	select {
	case <-call.crossed:
	case <-time.After(time.Second):
	}
}

// read takes an INVITE apart.
func read(req *sip.Request) Invite {
	in := Invite{
		CallID: string(*req.CallID()), To: req.Recipient.User, From: req.From().Address.User,
		CSeq: req.CSeq().SeqNo, Source: req.Source(), Transport: req.Transport(), At: time.Now(),
		Credentials: req.GetHeader("Authorization") != nil || req.GetHeader("Proxy-Authorization") != nil,
		Headers:     map[string]string{},
	}
	if d, there, err := leg.Description(req); err == nil && there {
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
