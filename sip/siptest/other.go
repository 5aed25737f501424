package siptest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/sip/auth"
	"github.com/parley-voice/parley/sip/dialog"
)

// A Registrar takes registrations.
type Registrar struct {
	// Challenge asks for credentials; nil takes everybody.
	Challenge *Challenge
	// Least is the shortest interval that is taken, and Most the longest that
	// is granted; 0 for none.
	Least, Most time.Duration
	// Status refuses every registration; 0 refuses none.
	Status int

	mu   sync.Mutex
	told []Binding
}

// A Binding is one registration that was taken.
type Binding struct {
	User, Contact string
	Interval      time.Duration // granted; 0 is a leave
	At            time.Time
}

// Bindings are the registrations taken so far, oldest first.
func (r *Registrar) Bindings() []Binding {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.told)
}

// register takes one REGISTER.
func (r *Registrar) register(c *Carrier, req *sip.Request, tx sip.ServerTransaction) {
	if r.Status != 0 {
		c.endpoint.Respond(tx, req, r.Status, "Refused")
		return
	}
	if want := r.Challenge; want != nil {
		ask := auth.Challenge{Realm: want.Realm, Nonce: "nonce-of-registrar", Algorithm: "MD5", QOP: true}
		h := req.GetHeader("Authorization")
		if h == nil || !ask.Verify(h.Value(), want.Username, string(want.Password), string(sip.REGISTER)) {
			value := fmt.Sprintf(`Digest realm=%q, nonce=%q, qop="auth"`, ask.Realm, ask.Nonce)
			c.endpoint.Respond(tx, req, http.StatusUnauthorized, "Who Are You", sip.NewHeader("WWW-Authenticate", value))
			return
		}
	}
	var interval time.Duration
	if h := req.GetHeader("Expires"); h != nil {
		n, _ := strconv.Atoi(h.Value())
		interval = time.Duration(n) * time.Second
	}
	if interval > 0 && interval < r.Least {
		c.endpoint.Respond(tx, req, 423, "Interval Too Brief", sip.NewHeader("Min-Expires", strconv.Itoa(int(r.Least/time.Second))))
		return
	}
	if r.Most > 0 {
		interval = min(interval, r.Most)
	}
	b := Binding{User: req.From().Address.User, Interval: interval, At: time.Now()}
	var headers []sip.Header
	if contact := req.Contact(); contact != nil {
		b.Contact = contact.Address.String()
		headers = append(headers, sip.NewHeader("Contact", fmt.Sprintf("<%s>;expires=%d", b.Contact, interval/time.Second)))
	}
	r.mu.Lock()
	r.told = append(r.told, b)
	r.mu.Unlock()
	c.journal.touch()
	c.endpoint.Respond(tx, req, http.StatusOK, "OK", headers...)
}

// options says how the carrier is.
func (c *Carrier) options() int {
	if c.Ping == nil {
		return http.StatusOK
	}
	return c.Ping()
}

// other takes what no call is needed for, and what not every user agent takes.
func (c *Carrier) other(req *sip.Request, tx sip.ServerTransaction) {
	c.mu.Lock()
	k := c.upCalls[dialog.RequestKey(req)]
	ringing := c.ringing[string(*req.CallID())]
	c.mu.Unlock()
	switch {
	case req.Method == sip.REGISTER && c.Registrar != nil:
		c.Registrar.register(c, req, tx)
	case req.Method == sip.PRACK && ringing != nil:
		ringing.pracked(req, tx)
	case req.Method == sip.REFER && k != nil && k.script.Refer != nil:
		k.referred(req, tx)
	default:
		c.endpoint.Respond(tx, req, http.StatusMethodNotAllowed, "Method Not Allowed")
	}
}

// referred plays what becomes of a REFER.
func (k *call) referred(req *sip.Request, tx sip.ServerTransaction) {
	c, refer := k.carrier, k.script.Refer
	c.journal.note(k.entry, func(e *Entry) {
		if h := req.GetHeader("Refer-To"); h != nil {
			e.ReferTo = h.Value()
		}
	})
	c.endpoint.Respond(tx, req, refer.Status, "As Told")
	if refer.Status >= 300 {
		return
	}
	c.endpoint.Go(func() {
		for i, status := range refer.Notices {
			if refer.Hangup && i == len(refer.Notices)-1 {
				break
			}
			state := "active;expires=60"
			if status >= 200 {
				state = "terminated;reason=noresource"
			}
			_, _ = k.up.Ask(context.Background(), sip.NOTIFY, "message/sipfrag", fmt.Sprintf("SIP/2.0 %d As Told\r\n", status),
				sip.NewHeader("Event", "refer"), sip.NewHeader("Subscription-State", state)) // the journal tells
		}
		if refer.Hangup {
			_ = k.up.Hangup("")
		}
	})
}

// reliable tells 183 until its PRACK comes (RFC 3262 section 3).
func (k *call) reliable() bool {
	c := k.carrier
	k.prack = make(chan struct{})
	c.mu.Lock()
	c.ringing[k.in.CallID] = k
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.ringing, k.in.CallID)
		c.mu.Unlock()
	}()
	res := k.response(183, "Session Progress")
	res.AppendHeader(sip.NewHeader("Require", "100rel"))
	res.AppendHeader(sip.NewHeader("RSeq", strconv.Itoa(firstReliable)))
	k.describe(res)
	for wait := 500 * time.Millisecond; ; wait *= 2 {
		if k.tx.Respond(res) != nil {
			return false
		}
		timer := time.NewTimer(wait)
		select {
		case <-k.prack:
			timer.Stop()
			return true
		case <-k.cancelled:
			timer.Stop()
			return false
		case <-c.endpoint.Closing():
			timer.Stop()
			return false
		case <-timer.C:
		}
	}
}

// firstReliable is the number of the reliable response.
const firstReliable = 7001

// pracked takes a PRACK.
func (k *call) pracked(req *sip.Request, tx sip.ServerTransaction) {
	c := k.carrier
	want := fmt.Sprintf("%d %d INVITE", firstReliable, k.in.CSeq)
	h := req.GetHeader("RAck")
	if h == nil || strings.Join(strings.Fields(h.Value()), " ") != want {
		c.endpoint.Respond(tx, req, 481, "Call/Transaction Does Not Exist")
		return
	}
	c.journal.note(k.entry, func(e *Entry) { e.Pracks++ })
	c.endpoint.Respond(tx, req, http.StatusOK, "OK")
	if !closed(k.prack) {
		close(k.prack)
	}
}
