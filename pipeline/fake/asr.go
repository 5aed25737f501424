package fake

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/tone"
)

// A recognizer is the wire protocol of one.
type recognizer interface {
	// greet is what is sent first; nil for nothing.
	greet() any
	// read is given a message of the client: sound, or a request.
	read(kind int, b []byte) (sound []byte, do request)
	// partial is a message with what is understood so far; nil for nothing.
	partial(u understood) any
	// final answers the client's request for what is final: now, and when it
	// is due.
	final(u understood) (now, due []any)
}

// A request is what a client wants of a recognizer.
type request int

const (
	listen request = iota
	finish         // what is open
	leave
	nonsense
)

// understood is what was understood since the last final result.
type understood struct {
	words      []tone.Word
	texts      string
	start, end time.Duration
	upTo       time.Duration // of the sound
	turn       int           // number of the final results before
}

// listening is one connection of a recognizer. Its reader owns it; a writer
// sends what is due.
type listening struct {
	recognizer
	script Script
	fault  Fault
	mulaw  bool
	rate   int
	hearer *tone.Hearer
	words  []tone.Word // since the last final result
	from   time.Duration
	heard  int           // samples
	quiet  time.Duration // of sound, when the client was last told that there is nothing
	turn   int
	due    chan result
}

// A result waits to be sent.
type result struct {
	at time.Time
	m  any
}

// listenASR plays a recognizer that is told the format of the sound by the query.
func (s *Server) listenASR(r recognizer) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		q := req.URL.Query()
		rate, err := strconv.Atoi(q.Get("sample_rate"))
		if err != nil || rate < 8000 || rate > 48000 {
			http.Error(w, "sample_rate: want 8000 to 48000", http.StatusBadRequest)
			return
		}
		s.recognize(w, req, &listening{recognizer: r, rate: rate, mulaw: strings.HasSuffix(q.Get("encoding"), "mulaw")})
	}
}

func (s *Server) recognize(w http.ResponseWriter, r *http.Request, l *listening) {
	l.script, l.fault = s.script, s.fault(ASR)
	if l.fault.refuses() && refused(w, r, l.fault) {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	conn, done, err := accept(w, r.WithContext(ctx))
	if err != nil {
		return // told by Upgrade
	}
	defer done()
	l.hearer, l.due = tone.NewHearer(l.rate), make(chan result, 256)
	if m := l.greet(); m != nil {
		l.queue(0, m)
	}
	s.wg.Go(func() {
		defer cancel()
		l.send(ctx, conn)
	})
	for {
		kind, b, err := conn.ReadMessage()
		if err != nil || !l.take(kind, b) {
			return
		}
		if len(l.words) > 1 && (l.fault.cuts() || l.fault == HalfOpen) {
			if l.fault == HalfOpen {
				<-ctx.Done() // the server's end
			}
			l.fault.end(conn.NetConn())
			return
		}
	}
}

// take is given one message of the client. It returns false at the end.
func (l *listening) take(kind int, b []byte) bool {
	sound, do := l.read(kind, b)
	switch do {
	case listen:
		l.hear(sound)
	case finish:
		l.finish()
	case leave, nonsense:
		return false
	}
	return true
}

func (l *listening) hear(b []byte) {
	pcm := make([]int16, len(b))
	if l.mulaw {
		codec.PCMU{}.Decode(pcm, b)
	} else {
		pcm = pcm[:len(b)/2]
		for i := range pcm {
			pcm[i] = int16(uint16(b[2*i]) | uint16(b[2*i+1])<<8) //nolint:gosec // two's complement
		}
	}
	words := l.hearer.Hear(pcm)
	l.heard += len(pcm)
	at := l.upTo()
	switch {
	case len(words) > 0:
		l.words = append(l.words, words...)
		l.tell(l.script.PartialLag - (at - words[len(words)-1].End)) // which was over a little while ago
	case len(l.words) == 0 && at-l.quiet >= 240*time.Millisecond:
		l.tell(l.script.PartialLag)
	}
}

func (l *listening) tell(lag time.Duration) {
	l.quiet = l.upTo()
	if m := l.partial(l.understood()); m != nil {
		l.queue(lag, m)
	}
}

func (l *listening) upTo() time.Duration {
	return time.Duration(l.heard) * time.Second / time.Duration(l.rate)
}

// finish schedules a result of the words so far.
func (l *listening) finish() {
	u := l.understood()
	now, due := l.final(u)
	lag := l.script.FinalLag
	switch l.fault {
	case Late:
		lag += l.script.late()
	case Mute:
		due = nil
	default:
	}
	for _, m := range now {
		l.queue(0, m)
	}
	for _, m := range due {
		l.queue(lag, m)
	}
	if l.fault == Mute {
		return // it is still open
	}
	if len(due) > 0 {
		l.turn++
	}
	l.words, l.from = nil, u.end
}

func (l *listening) understood() understood {
	u := understood{words: l.words, start: l.from, end: l.from, upTo: l.upTo(), turn: l.turn}
	var texts []string
	for i, w := range l.words {
		if i == 0 {
			u.start = w.Start
		}
		u.end = w.End
		texts = append(texts, w.Text)
	}
	u.texts = strings.Join(texts, " ")
	return u
}

func (l *listening) queue(lag time.Duration, m any) {
	select {
	case l.due <- result{time.Now().Add(lag), m}:
	default: // nobody reads: the connection is about to end
	}
}

// send writes results when they are due, in order.
func (l *listening) send(ctx context.Context, conn *websocket.Conn) {
	for n := 0; ; {
		select {
		case r := <-l.due:
			if l.fault == Stall || l.fault.stops() && n > 1 || !wait(ctx, time.Until(r.at)) {
				continue
			}
			if l.fault == Garble {
				_ = conn.WriteMessage(websocket.TextMessage, []byte("{garbled"))
				return
			}
			if conn.WriteJSON(r.m) != nil {
				return
			}
			n++
		case <-ctx.Done():
			return
		}
	}
}
