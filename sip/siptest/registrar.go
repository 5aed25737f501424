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

// A Registrar accepts registrations.
type Registrar struct {
	// Challenge asks for credentials; nil accepts all.
	Challenge *Challenge
	// MinExpires and MaxExpires bound the interval; 0 means no bound.
	MinExpires, MaxExpires time.Duration
	// Status refuses every registration; 0 refuses none.
	Status int

	mu       sync.Mutex
	bindings []Binding
}

// A Binding is an accepted registration.
type Binding struct {
	User, Contact string
	Interval      time.Duration // granted interval; 0 unregisters
	At            time.Time
}

// Bindings returns the accepted registrations, oldest first.
func (r *Registrar) Bindings() []Binding {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.bindings)
}

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
			c.endpoint.Respond(tx, req, http.StatusUnauthorized, "Unauthorized", sip.NewHeader("WWW-Authenticate", value))
			return
		}
	}
	var interval time.Duration
	if h := req.GetHeader("Expires"); h != nil {
		n, _ := strconv.Atoi(h.Value())
		interval = time.Duration(n) * time.Second
	}
	if interval > 0 && interval < r.MinExpires {
		c.endpoint.Respond(tx, req, 423, "Interval Too Brief", sip.NewHeader("Min-Expires", strconv.Itoa(int(r.MinExpires/time.Second))))
		return
	}
	if r.MaxExpires > 0 {
		interval = min(interval, r.MaxExpires)
	}
	b := Binding{User: req.From().Address.User, Interval: interval, At: time.Now()}
	var headers []sip.Header
	if contact := req.Contact(); contact != nil {
		b.Contact = contact.Address.String()
		headers = append(headers, sip.NewHeader("Contact", fmt.Sprintf("<%s>;expires=%d", b.Contact, interval/time.Second)))
	}
	r.mu.Lock()
	r.bindings = append(r.bindings, b)
	r.mu.Unlock()
	c.journal.touch()
	c.endpoint.Respond(tx, req, http.StatusOK, "OK", headers...)
}

func (c *Carrier) optionsStatus() int {
	if c.OptionsStatus == nil {
		return http.StatusOK
	}
	return c.OptionsStatus()
}

func (c *Carrier) onOther(req *sip.Request, tx sip.ServerTransaction) {
	c.mu.Lock()
	k := c.answered[dialog.RequestKey(req)]
	ringing := c.ringing[string(*req.CallID())]
	c.mu.Unlock()
	switch {
	case req.Method == sip.REGISTER && c.Registrar != nil:
		c.Registrar.register(c, req, tx)
	case req.Method == sip.PRACK && ringing != nil:
		ringing.onPRACK(req, tx)
	case req.Method == sip.REFER && k != nil && k.script.Refer != nil:
		k.onRefer(req, tx)
	default:
		c.endpoint.Respond(tx, req, http.StatusMethodNotAllowed, "Method Not Allowed")
	}
}

func (k *call) onRefer(req *sip.Request, tx sip.ServerTransaction) {
	c, refer := k.carrier, k.script.Refer
	c.journal.update(k.entry, func(e *Entry) {
		if h := req.GetHeader("Refer-To"); h != nil {
			e.ReferTo = h.Value()
		}
	})
	c.endpoint.Respond(tx, req, refer.Status, "Scripted")
	if refer.Status >= 300 {
		return
	}
	c.endpoint.Go(func() {
		for i, status := range refer.Statuses {
			if refer.Hangup && i == len(refer.Statuses)-1 {
				break
			}
			state := "active;expires=60"
			if status >= 200 {
				state = "terminated;reason=noresource"
			}
			_, _ = k.leg.Request(context.Background(), sip.NOTIFY, "message/sipfrag", fmt.Sprintf("SIP/2.0 %d Scripted\r\n", status),
				sip.NewHeader("Event", "refer"), sip.NewHeader("Subscription-State", state)) // results are in the journal
		}
		if refer.Hangup {
			_ = k.leg.Hangup("")
		}
	})
}

// sendReliable retransmits the 183 until its PRACK arrives (RFC 3262 section 3).
func (k *call) sendReliable() bool {
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
		select {
		case <-k.prack:
			return true
		case <-k.canceled:
			return false
		case <-c.endpoint.Closing():
			return false
		case <-time.After(wait):
		}
	}
}

// firstReliable is the RSeq of the reliable response.
const firstReliable = 7001

func (k *call) onPRACK(req *sip.Request, tx sip.ServerTransaction) {
	c := k.carrier
	want := fmt.Sprintf("%d %d INVITE", firstReliable, k.in.CSeq)
	h := req.GetHeader("RAck")
	if h == nil || strings.Join(strings.Fields(h.Value()), " ") != want {
		c.endpoint.Respond(tx, req, 481, "Call/Transaction Does Not Exist")
		return
	}
	c.journal.update(k.entry, func(e *Entry) { e.Pracks++ })
	c.endpoint.Respond(tx, req, http.StatusOK, "OK")
	if !isClosed(k.prack) {
		close(k.prack)
	}
}
