package leg

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/guard"
)

// noticesKept is how many notices of a REFER wait for who sent it. A peer that
// sends more than that is not waited for: the newest is dropped, and the REFER
// ends with its context.
const noticesKept = 16

// A notice is what a NOTIFY tells of a REFER (RFC 3515 section 2.4.4).
type notice struct {
	status int
	over   bool // there will be no other
}

// Refer implements media.Referrer.
func (l *Leg) Refer(ctx context.Context, number string) error {
	if err := guard.Number("number to transfer to", number); err != nil {
		return err
	}
	for old := true; old; { // notices of an earlier one
		select {
		case <-l.refer:
		default:
			old = false
		}
	}
	req := l.dialog.Request(sip.REFER)
	to := l.dialog.RemoteURI()
	to = sip.Uri{Scheme: "sip", User: guard.Escape(number), Host: to.Host, Port: to.Port}
	by := l.endpoint.Contact(l.dialog.Transport()).Address
	req.AppendHeader(sip.NewHeader("Refer-To", "<"+to.String()+">"))
	req.AppendHeader(sip.NewHeader("Referred-By", "<"+by.String()+">"))
	l.handed.Store(true) // whoever takes it may hang up before the answer is here
	err := l.handOver(ctx, req)
	if err != nil {
		l.handed.Store(false)
	}
	return err
}

func (l *Leg) handOver(ctx context.Context, req *sip.Request) error {
	res, err := l.ask(ctx, req)
	switch {
	case err != nil:
		return fmt.Errorf("transfer: %w", err)
	case !res.IsSuccess():
		return fmt.Errorf("transfer: %w", &refusal{sip.REFER, res.StatusCode, guard.Clean(res.Reason)})
	}
	return l.referred(ctx)
}

// referred waits for what becomes of a REFER that was taken.
func (l *Leg) referred(ctx context.Context) error {
	for {
		select {
		case n := <-l.refer:
			switch {
			case n.status >= 200 && n.status < 300:
				l.end(media.Transferred, true)
				return nil
			case n.status >= 300:
				return fmt.Errorf("transfer: the other answered %d", n.status)
			case n.over:
				return errors.New("transfer: nobody tells what became of it")
			}
		case <-l.ended:
			if l.Cause() == media.Transferred {
				return nil
			}
			return fmt.Errorf("transfer: %w", errEnded)
		case <-ctx.Done():
			return fmt.Errorf("transfer: %w", ctx.Err())
		}
	}
}

// notify takes a NOTIFY.
func (l *Leg) notify(req *sip.Request, tx sip.ServerTransaction) {
	e := l.endpoint
	event := req.GetHeader("Event")
	if event == nil {
		event = req.GetHeader("o")
	}
	switch {
	case event == nil || !strings.EqualFold(token(event.Value()), "refer"):
		e.Respond(tx, req, 489, "Bad Event", sip.NewHeader("Allow-Events", "refer"))
		return
	case !l.dialog.Receive(req.CSeq().SeqNo):
		e.Respond(tx, req, 500, "Out Of Order")
		return
	}
	n, err := readNotice(req)
	if err != nil {
		e.Respond(tx, req, 400, "Bad Request")
		return
	}
	e.Respond(tx, req, 200, "OK")
	select {
	case l.refer <- n:
	default: // see noticesKept
	}
}

// readNotice reads the message fragment of a NOTIFY: the status line of what
// the other answered.
func readNotice(req *sip.Request) (notice, error) {
	var n notice
	if h := req.GetHeader("Subscription-State"); h != nil {
		n.over = strings.EqualFold(token(h.Value()), "terminated")
	}
	line, _, _ := strings.Cut(string(req.Body()), "\n")
	words := strings.Fields(line)
	if len(words) == 0 {
		return n, nil // nothing to tell yet
	}
	if len(words) < 2 || !strings.EqualFold(words[0], "SIP/2.0") {
		return n, errors.New("notice is no status line")
	}
	status, err := strconv.Atoi(words[1])
	if err != nil || status < 100 || status > 699 {
		return n, errors.New("notice has no status")
	}
	n.status = status
	return n, nil
}

// token is a header's value without its parameters.
func token(value string) string {
	t, _, _ := strings.Cut(value, ";")
	return strings.TrimSpace(t)
}
