package fakeprovider

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

// A recognizer implements the wire protocol of a provider.
type recognizer interface {
	// hello returns the first message, or nil.
	hello() any
	// read parses a message of the client: audio, or a request.
	read(kind int, b []byte) (sound []byte, do request)
	// partial returns a message with the interim transcript, or nil.
	partial(u transcript) any
	// final returns the responses to a finalize request: at once, and after the lag.
	final(u transcript) (now, due []any)
}

// A request is the kind of a client's message.
type request int

const (
	listen request = iota
	finish         // finalize
	leave
	nonsense
)

// A transcript is the text since the last final result.
type transcript struct {
	words      []tone.Word
	texts      string
	start, end time.Duration
	upTo       time.Duration // audio position
	turn       int           // number of earlier final results
}

// An asrSession is one connection. It belongs to its reader; a writer goroutine sends
// results when they are due.
type asrSession struct {
	recognizer
	script      Script
	fault       Fault
	mulaw       bool
	rate        int
	decoder     *tone.Decoder
	words       []tone.Word // since the last final result
	from        time.Duration
	samples     int           // samples
	lastPartial time.Duration // audio position of the last interim result
	turn        int
	due         chan result
}

// A result waits to be sent.
type result struct {
	at time.Time
	m  any
}

// listenASR serves a recognizer whose audio format is in the query.
func (s *Server) listenASR(r recognizer) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		q := req.URL.Query()
		rate, err := strconv.Atoi(q.Get("sample_rate"))
		if err != nil || rate < 8000 || rate > 48000 {
			http.Error(w, "sample_rate: want 8000 to 48000", http.StatusBadRequest)
			return
		}
		s.recognize(w, req, &asrSession{recognizer: r, rate: rate, mulaw: strings.HasSuffix(q.Get("encoding"), "mulaw")})
	}
}

func (s *Server) recognize(w http.ResponseWriter, r *http.Request, l *asrSession) {
	l.script, l.fault = s.script, s.fault(ASR)
	if l.fault.refuses() && refuse(w, r, l.fault) {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	conn, done, err := accept(w, r.WithContext(ctx))
	if err != nil {
		return // Upgrade has responded
	}
	defer done()
	l.decoder, l.due = tone.NewDecoder(l.rate), make(chan result, 256)
	if m := l.hello(); m != nil {
		l.queue(0, m)
	}
	s.wg.Go(func() {
		defer cancel()
		l.send(ctx, conn)
	})
	for {
		kind, b, err := conn.ReadMessage()
		if err != nil || !l.onMessage(kind, b) {
			return
		}
		if len(l.words) > 1 && (l.fault.cuts() || l.fault == HalfOpen) {
			if l.fault == HalfOpen {
				<-ctx.Done() // until the server closes
			}
			l.fault.end(conn.NetConn())
			return
		}
	}
}

// onMessage handles one message of the client. It returns false at the end.
func (l *asrSession) onMessage(kind int, b []byte) bool {
	sound, do := l.read(kind, b)
	switch do {
	case listen:
		l.onAudio(sound)
	case finish:
		l.finish()
	case leave, nonsense:
		return false
	}
	return true
}

func (l *asrSession) onAudio(b []byte) {
	pcm := make([]int16, len(b))
	if l.mulaw {
		codec.PCMU{}.Decode(pcm, b)
	} else {
		pcm = pcm[:len(b)/2]
		for i := range pcm {
			pcm[i] = int16(uint16(b[2*i]) | uint16(b[2*i+1])<<8) //nolint:gosec // two's complement
		}
	}
	words := l.decoder.Decode(pcm)
	l.samples += len(pcm)
	at := l.upTo()
	switch {
	case len(words) > 0:
		l.words = append(l.words, words...)
		l.sendPartial(l.script.PartialLag - (at - words[len(words)-1].End)) // relative to the end of the word
	case len(l.words) == 0 && at-l.lastPartial >= 240*time.Millisecond:
		l.sendPartial(l.script.PartialLag)
	}
}

func (l *asrSession) sendPartial(lag time.Duration) {
	l.lastPartial = l.upTo()
	if m := l.partial(l.understood()); m != nil {
		l.queue(lag, m)
	}
}

func (l *asrSession) upTo() time.Duration {
	return time.Duration(l.samples) * time.Second / time.Duration(l.rate)
}

// finish schedules the final result.
func (l *asrSession) finish() {
	u := l.understood()
	now, due := l.final(u)
	lag := l.script.FinalLag
	switch l.fault {
	case Late:
		lag += l.script.lateBy()
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
		return // it stays open
	}
	if len(due) > 0 {
		l.turn++
	}
	l.words, l.from = nil, u.end
}

func (l *asrSession) understood() transcript {
	u := transcript{words: l.words, start: l.from, end: l.from, upTo: l.upTo(), turn: l.turn}
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

func (l *asrSession) queue(lag time.Duration, m any) {
	select {
	case l.due <- result{time.Now().Add(lag), m}:
	default: // the connection is about to end
	}
}

// send writes results in order when they are due.
func (l *asrSession) send(ctx context.Context, conn *websocket.Conn) {
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
