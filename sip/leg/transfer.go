package leg

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/sanitize"
)

// maxNotifies bounds the NOTIFY results that wait for the sender of a REFER.
// If more would wait, the newest is dropped; the sender then waits until its
// context ends.
const maxNotifies = 16

// A transfer is the state of a REFER.
type transfer struct {
	started  atomic.Bool // a REFER was sent and not refused
	notifies chan notify
}

// A notify is the progress that a NOTIFY reports (RFC 3515 section 2.4.4).
type notify struct {
	status  int
	isFinal bool
}

func (t *transfer) discard() {
	for {
		select {
		case <-t.notifies:
		default:
			return
		}
	}
}

// Refer implements media.Referrer.
func (l *Leg) Refer(ctx context.Context, number string) error {
	if err := sanitize.CheckNumber("number to transfer to", number); err != nil {
		return err
	}
	l.transfer.discard()
	req := l.dialog.Request(sip.REFER)
	to := l.dialog.RemoteURI()
	to = sip.Uri{Scheme: "sip", User: sanitize.EscapeUser(number), Host: to.Host, Port: to.Port}
	by := l.endpoint.Contact(l.dialog.Transport()).Address
	req.AppendHeader(sip.NewHeader("Refer-To", "<"+to.String()+">"))
	req.AppendHeader(sip.NewHeader("Referred-By", "<"+by.String()+">"))
	l.transfer.started.Store(true) // the peer may hang up before its response arrives
	err := l.sendRefer(ctx, req)
	if err != nil {
		l.transfer.started.Store(false)
	}
	return err
}

func (l *Leg) sendRefer(ctx context.Context, req *sip.Request) error {
	res, err := l.do(ctx, req)
	switch {
	case err != nil:
		return fmt.Errorf("transfer: %w", err)
	case !res.IsSuccess():
		return fmt.Errorf("transfer: %w", &refusal{sip.REFER, res.StatusCode, sanitize.Clean(res.Reason)})
	}
	return l.awaitTransfer(ctx)
}

// awaitTransfer waits for the result of an accepted REFER.
func (l *Leg) awaitTransfer(ctx context.Context) error {
	for {
		select {
		case n := <-l.transfer.notifies:
			switch {
			case n.status >= 200 && n.status < 300:
				l.end(media.Transferred, true)
				return nil
			case n.status >= 300:
				return fmt.Errorf("transfer: the target answered %d", n.status)
			case n.isFinal:
				return errors.New("transfer: the carrier reported no result")
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

func (l *Leg) onNotify(req *sip.Request, tx sip.ServerTransaction) {
	e := l.endpoint
	event := req.GetHeader("Event")
	if event == nil {
		event = req.GetHeader("o")
	}
	if event == nil || !strings.EqualFold(token(event.Value()), "refer") {
		e.Respond(tx, req, 489, "Bad Event", sip.NewHeader("Allow-Events", "refer"))
		return
	}
	n, err := parseNotify(req)
	if err != nil {
		e.Respond(tx, req, 400, "Bad Request")
		return
	}
	e.Respond(tx, req, 200, "OK")
	select {
	case l.transfer.notifies <- n:
	default: // maxNotifies bounds the queue
	}
}

// parseNotify reads the status line of the target's response from the message
// fragment of a NOTIFY.
func parseNotify(req *sip.Request) (notify, error) {
	var n notify
	if h := req.GetHeader("Subscription-State"); h != nil {
		n.isFinal = strings.EqualFold(token(h.Value()), "terminated")
	}
	line, _, _ := strings.Cut(string(req.Body()), "\n")
	words := strings.Fields(line)
	if len(words) == 0 {
		return n, nil // the target has not responded yet
	}
	if len(words) < 2 || !strings.EqualFold(words[0], "SIP/2.0") {
		return n, errors.New("notify body is not a status line")
	}
	status, err := strconv.Atoi(words[1])
	if err != nil || status < 100 || status > 699 {
		return n, errors.New("notify body has no status from 100 to 699")
	}
	n.status = status
	return n, nil
}

func token(value string) string {
	t, _, _ := strings.Cut(value, ";")
	return strings.TrimSpace(t)
}
