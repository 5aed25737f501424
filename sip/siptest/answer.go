package siptest

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/media/sdp"
	"github.com/parley-voice/parley/sip/dialog"
	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/leg"
)

func (k *call) answer() {
	res := k.response(http.StatusOK, "OK")
	l, err := k.establish(res, k.tag, k.session)
	if err != nil {
		k.respond(http.StatusInternalServerError, "Internal Error")
		return
	}
	res.AppendHeader(sip.NewHeader("Allow", endpoint.Allow))
	for name, value := range k.script.Headers {
		res.AppendHeader(sip.NewHeader(name, value))
	}
	if s := k.script.Session; s.Length > 0 {
		res.AppendHeader(sip.NewHeader("Session-Expires", s.String()))
		res.AppendHeader(sip.NewHeader("Require", "timer"))
	}
	if k.script.SDP != nil {
		res.SetBody(k.script.SDP)
	}
	key := l.DialogKey()
	k.carrier.mu.Lock()
	k.leg = l
	k.carrier.answered[key] = k
	k.carrier.mu.Unlock()
	k.carrier.journal.update(k.entry, func(e *Entry) {
		e.Answered, e.Status, e.AnsweredAt = true, http.StatusOK, time.Now()
	})
	k.carrier.endpoint.Go(func() {
		<-l.Ended()
		k.carrier.mu.Lock()
		delete(k.carrier.answered, key)
		k.carrier.mu.Unlock()
		k.carrier.journal.update(k.entry, func(e *Entry) { e.Cause, e.EndedAt = l.Cause(), time.Now() })
	})
	if k.script.AnswerOnCancel {
		_ = k.tx.Respond(res) // SendUntilACK reports errors
		close(k.crossed)
	}
	if k.script.SecondAnswer {
		k.carrier.endpoint.Go(func() { k.fork() })
	}
	if leg.SendUntilACK(k.tx, res, l.ACKs(), l.Ended()) == nil {
		select {
		case <-k.canceled:
			l.Abandon(media.Canceled)
		default:
			_ = l.Hangup(media.Failure)
		}
		return
	}
	k.carrier.journal.update(k.entry, func(e *Entry) { e.Acked = true })
	if talk := k.script.Talk; talk != nil {
		k.carrier.endpoint.Go(func() { run(l, talk) })
	}
}

func run(l *leg.Leg, talk func(context.Context, media.Leg)) {
	ctx, cancel := endpoint.WithStop(context.Background(), l.Ended())
	defer cancel()
	talk(ctx, l)
	_ = l.Hangup(media.LocalHangup)
}

// establish adds our session description to res and starts the leg.
func (k *call) establish(res *sip.Response, tag string, session *rtp.Session) (*leg.Leg, error) {
	d, err := dialog.FromRequest(k.req, tag)
	if err != nil {
		session.Close()
		return nil, err
	}
	local, agreed := session.Local(), k.agreed
	if k.script.MediaRelay != nil {
		if local, agreed.Remote, err = k.script.MediaRelay(local, agreed.Remote); err != nil {
			session.Close()
			return nil, err
		}
	}
	localSDP := sdp.Answer(local, sdp.Origin{ID: 1, Version: 1}, agreed)
	if p := k.script.Ptime; p > 0 {
		localSDP.Ptime, agreed.Ptime = int(p.Milliseconds()), p
	}
	leg.SetSDP(res, localSDP)
	agreed.Mute = agreed.Mute || k.script.NoMedia
	return leg.New(k.carrier.endpoint, leg.Config{
		Dialog: d, Session: session, Agreement: agreed, LocalSDP: localSDP, Wish: k.wish, IgnoreBye: k.script.IgnoreBye,
		Timer: k.script.schedule(), Allow: leg.AllowedMethods(k.req),
	}, leg.Settings{Active: &k.carrier.active, MinSession: k.carrier.MinSession})
}

func (s Script) schedule() dialog.RefreshSchedule {
	if s.NoRefresh {
		return dialog.RefreshSchedule{}
	}
	return dialog.RefreshSchedule{Length: s.Session.Length, IsRefresher: s.Session.Refresher == dialog.UAS}
}

func (k *call) fork() {
	session, err := k.carrier.Media.Listen()
	if err != nil {
		return
	}
	tag := k.tag + strings.ToUpper(sip.GenerateTagN(4))
	res := k.response(http.StatusOK, "OK")
	res.To().Params.Add("tag", tag)
	l, err := k.establish(res, tag, session)
	if err != nil {
		return
	}
	// This answer must come after the ACK of the first one.
	if k.carrier.Wait(context.Background(), func([]Entry) bool { return k.isAcked() || isClosed(k.carrier.endpoint.Closing()) }) != nil {
		return
	}
	_ = k.tx.Respond(res) // sent only once, because loopback loses no datagrams
	<-l.Ended()
	k.carrier.journal.update(k.entry, func(e *Entry) { e.Forked = l.Cause() })
}

// isAcked reports whether the ACK arrived. It locks the journal itself: its caller, Wait, does not hold the lock.
func (k *call) isAcked() bool {
	k.carrier.journal.mu.Lock()
	defer k.carrier.journal.mu.Unlock()
	return k.entry.Acked
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
