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
	"github.com/parley-voice/parley/sip/timer"
)

// answer takes the call.
func (k *call) answer() {
	res := k.response(http.StatusOK, "OK")
	up, err := k.establish(res, k.tag, k.session)
	if err != nil {
		k.respond(http.StatusInternalServerError, "Broken")
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
	key := up.Dialog()
	k.carrier.mu.Lock()
	k.up = up
	k.carrier.upCalls[key] = k
	k.carrier.mu.Unlock()
	k.carrier.journal.note(k.entry, func(e *Entry) {
		e.Answered, e.Status, e.AnsweredAt = true, http.StatusOK, time.Now()
	})
	k.carrier.endpoint.Go(func() {
		<-up.Ended()
		k.carrier.mu.Lock()
		delete(k.carrier.upCalls, key)
		k.carrier.mu.Unlock()
		k.carrier.journal.note(k.entry, func(e *Entry) { e.Cause, e.EndedAt = up.Cause(), time.Now() })
	})
	if k.script.AnswerOnCancel {
		_ = k.tx.Respond(res) // Repeat will tell
		close(k.crossed)
	}
	if k.script.SecondAnswer {
		k.carrier.endpoint.Go(func() { k.fork() })
	}
	if leg.Repeat(k.tx, res, up.ACK(), up.Ended()) == nil {
		select {
		case <-k.cancelled:
			up.Abandon(media.Cancelled)
		default:
			_ = up.Hangup(media.Failure)
		}
		return
	}
	k.carrier.journal.note(k.entry, func(e *Entry) { e.Acked = true })
	if talk := k.script.Talk; talk != nil {
		k.carrier.endpoint.Go(func() { run(up, talk) })
	}
}

// run talks, and hangs up.
func run(up *leg.Leg, talk func(context.Context, media.Leg)) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		select {
		case <-up.Ended():
			cancel()
		case <-ctx.Done():
		}
	}()
	talk(ctx, up)
	_ = up.Hangup(media.LocalHangup)
	<-stop
}

// establish makes a leg of the answer that res will be.
func (k *call) establish(res *sip.Response, tag string, session *rtp.Session) (*leg.Leg, error) {
	d, err := dialog.FromRequest(k.req, tag)
	if err != nil {
		session.Close()
		return nil, err
	}
	local, agreed := session.Local(), k.agreed
	if k.script.Through != nil {
		if local, agreed.Remote, err = k.script.Through(local, agreed.Remote); err != nil {
			session.Close()
			return nil, err
		}
	}
	told := sdp.Answer(local, sdp.Origin{ID: 1, Version: 1}, agreed)
	if p := k.script.Ptime; p > 0 {
		told.Ptime, agreed.Ptime = int(p.Milliseconds()), p
	}
	leg.WithSDP(res, told)
	agreed.Mute = agreed.Mute || k.script.NoMedia
	return leg.Establish(k.carrier.endpoint, leg.Answered{
		Dialog: d, Session: session, Agreement: agreed, Told: told, Wish: k.wish, Deaf: k.script.IgnoreBye,
		Term: k.script.term(), Allow: leg.Allowed(k.req),
	}, leg.Rules{Up: &k.carrier.up, Least: k.carrier.LeastSession})
}

// term is what the script says of the session.
func (s Script) term() timer.Term {
	if s.Lapses {
		return timer.Term{}
	}
	return timer.Term{Length: s.Session.Length, Ours: s.Session.Refresher == timer.UAS}
}

// fork has a second phone answer.
func (k *call) fork() {
	session, err := k.carrier.Media.Listen()
	if err != nil {
		return
	}
	tag := k.tag + strings.ToUpper(sip.GenerateTagN(4))
	res := k.response(http.StatusOK, "OK")
	res.To().Params.Add("tag", tag)
	up, err := k.establish(res, tag, session)
	if err != nil {
		return
	}
	// The first answer is the first to arrive: this one follows its ACK.
	if k.carrier.Wait(context.Background(), func([]Entry) bool { return k.acked() || closed(k.carrier.endpoint.Closing()) }) != nil {
		return
	}
	_ = k.tx.Respond(res) // sent once: on loopback nothing is lost
	<-up.Ended()
	k.carrier.journal.note(k.entry, func(e *Entry) { e.Forked = up.Cause() })
}

// acked needs the journal's lock, which Wait does not hold: it asks anew.
func (k *call) acked() bool {
	k.carrier.journal.mu.Lock()
	defer k.carrier.journal.mu.Unlock()
	return k.entry.Acked
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
