package fakeprovider

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/tone"
)

// UnknownModel is the name of a model that each fake recognizer refuses, in the way of the real provider.
const UnknownModel = "unknown"

// A recognizer implements the wire protocol of a provider. A message is a string (sent as
// text), bytes (sent as binary) or any other value (sent as JSON).
type recognizer interface {
	// hello returns the first message, or nil.
	hello() any
	// read parses a message of the client. It returns the audio or the request in the message.
	read(kind int, b []byte) (sound []byte, do request)
	// partial returns a message with the interim transcript, or nil.
	partial(u transcript) any
	// final returns the responses to a Finalize: now is sent at once, and due after Script.FinalLag.
	final(u transcript) (now, due []any)
	// endpoint returns the messages for a turn that ends by silence, without a Finalize.
	endpoint(u transcript) []any
	// extra returns further messages that are due, such as heartbeats. It is called after each message that is not
	// a request.
	extra(u transcript) []any
	// bye returns the last messages before the connection ends at the client's request.
	bye(u transcript) []any
	// refusal returns the messages and the close code with which the provider refuses the client's messages so
	// far. Code 0 means that it accepts them.
	refusal() (messages []any, code int)
}

// plain provides empty versions of the optional methods of a recognizer.
type plain struct{}

func (plain) hello() any                { return nil }
func (plain) endpoint(transcript) []any { return nil }
func (plain) extra(transcript) []any    { return nil }
func (plain) bye(transcript) []any      { return nil }
func (plain) refusal() ([]any, int)     { return nil, 0 }

// A request is the kind of a client's message.
type request int

const (
	listen   request = iota
	finish           // a Finalize
	leave            // the client ends the stream
	nonsense         // an invalid message
)

// A transcript is the text since the last final result.
type transcript struct {
	words      []tone.Word
	texts      string
	start, end time.Duration
	upTo       time.Duration // duration of the audio so far
	last       time.Duration // end of the last word, including words of earlier results
	turn       int           // number of earlier final results
}

// An asrSession is one connection to a recognizer. Only the goroutine that reads messages uses it; another goroutine
// sends the results in due.
type asrSession struct {
	recognizer
	script      Script
	fault       Fault
	mulaw       bool
	rate        int
	silence     time.Duration // silence after which the provider ends the turn; 0 means never
	idle        time.Duration // time without a message after which the provider ends the connection; 0 means never
	decoder     Decoder
	words       []tone.Word // words since the last final result
	texts       string      // texts of words, separated by spaces
	pcm         []int16     // buffer of onAudio
	from        time.Duration
	last        time.Duration // end of the last word
	samples     int           // number of samples so far
	lastPartial time.Duration // audio position at the last interim result
	turn        int
	due         chan result
}

// A result is a message to send at a time. m is the message, or closing.
type result struct {
	at time.Time
	m  any
}

// closing tells the writer to close the connection with a code.
type closing struct{ code int }

// A writer writes to the connection of a session.
type writer struct {
	write func(m any) error
	close func(code int)
}

// listenASR serves a recognizer whose audio format is in the query. The provider ends a connection after the time idle
// without a message; 0 means never. build returns the recognizer and sets l.silence.
func (s *Server) listenASR(idle time.Duration, build func(q url.Values, l *asrSession) recognizer) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		q := req.URL.Query()
		rate, err := strconv.Atoi(q.Get("sample_rate"))
		if err != nil || rate < 8000 || rate > 48000 {
			http.Error(w, `{"err_msg":"sample_rate: want 8000 to 48000"}`, http.StatusBadRequest)
			return
		}
		l := &asrSession{rate: rate, idle: idle, mulaw: strings.HasSuffix(q.Get("encoding"), "mulaw")}
		l.recognizer = build(q, l)
		s.recognize(w, req, l)
	}
}

// recognize serves a session over a WebSocket.
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
	out := writer{
		write: func(m any) error {
			switch m := m.(type) {
			case string:
				return conn.WriteMessage(websocket.TextMessage, []byte(m))
			case []byte:
				return conn.WriteMessage(websocket.BinaryMessage, m)
			default:
				return conn.WriteJSON(m)
			}
		},
		close: func(code int) {
			reason := ""
			if code != websocket.CloseNormalClosure {
				reason = "No such model, or an invalid message."
			}
			_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(time.Second))
		},
	}
	s.run(ctx, cancel, l, out, func() (int, []byte, error) {
		if l.idle > 0 {
			_ = conn.SetReadDeadline(time.Now().Add(l.idle)) // if this fails, so does the read
		}
		kind, b, err := conn.ReadMessage()
		var limit net.Error
		if errors.As(err, &limit) && limit.Timeout() {
			out.close(websocket.CloseInternalServerErr) // like Deepgram's NET-0001
		}
		return kind, b, err
	})
	if l.fault.cuts() {
		l.fault.end(conn.NetConn())
	}
}

// run serves a session until the client leaves, read fails or a fault ends the session. It returns a channel that is
// closed after the last write, at the latest after the end of ctx.
func (s *Server) run(
	ctx context.Context, cancel context.CancelFunc, l *asrSession, out writer, read func() (int, []byte, error),
) (written chan struct{}) {
	defer func() { s.receive(Received{Sound: l.upTo()}) }()
	l.due = make(chan result, 256)
	if l.rate > 0 {
		l.decoder = l.script.newDecoder(l.rate)
	}
	if m := l.hello(); m != nil {
		l.queue(0, m)
	}
	written = make(chan struct{})
	s.wg.Go(func() {
		defer cancel()
		defer close(written)
		l.send(ctx, out)
	})
	for l.accepts() {
		kind, b, err := read()
		if err != nil {
			return written
		}
		if !l.onMessage(kind, b) {
			break
		}
		if len(l.words) > 1 && (l.fault.cuts() || l.fault == HalfOpen) {
			if l.fault == HalfOpen {
				<-ctx.Done() // block until Close
			}
			return written
		}
	}
	select {
	case <-written:
	case <-ctx.Done():
	}
	return written
}

// accepts reports whether the provider accepts the client's messages so far. If not, it queues the refusal.
func (l *asrSession) accepts() bool {
	messages, code := l.refusal()
	if code == 0 {
		return true
	}
	l.leave(messages, code)
	return false
}

// leave queues messages and the end of the connection.
func (l *asrSession) leave(messages []any, code int) {
	for _, m := range messages {
		l.queue(0, m)
	}
	l.queue(0, closing{code})
}

// onMessage handles one message of the client. It returns false if the session ends.
func (l *asrSession) onMessage(kind int, b []byte) bool {
	sound, do := l.read(kind, b)
	switch do {
	case listen:
		l.onAudio(sound)
		for _, m := range l.extra(l.understood()) {
			l.queue(0, m)
		}
	case finish:
		l.finish()
	case leave:
		l.leave(l.bye(l.understood()), websocket.CloseNormalClosure)
		return false
	case nonsense:
		l.leave(nil, websocket.CloseUnsupportedData)
		return false
	}
	return true
}

func (l *asrSession) onAudio(b []byte) {
	if l.decoder == nil || len(b) == 0 {
		return
	}
	l.pcm = slices.Grow(l.pcm[:0], len(b))
	pcm := l.pcm[:len(b)]
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
		l.add(words)
		l.sendPartial(l.script.PartialLag - (at - l.last)) // the lag counts from the end of the word
	case len(l.words) == 0 && at-l.lastPartial >= 240*time.Millisecond:
		l.sendPartial(l.script.PartialLag)
	case l.silence > 0 && len(l.words) > 0 && at-l.last >= l.silence && l.fault != Mute:
		l.endTurn(l.endpoint(l.understood()))
	}
}

func (l *asrSession) add(words []tone.Word) {
	for _, w := range words {
		if l.texts != "" {
			l.texts += " "
		}
		l.texts += w.Text
	}
	l.words, l.last = append(l.words, words...), words[len(words)-1].End
}

func (l *asrSession) sendPartial(lag time.Duration) {
	l.lastPartial = l.upTo()
	if m := l.partial(l.understood()); m != nil {
		l.queue(lag, m)
	}
}

func (l *asrSession) upTo() time.Duration {
	if l.rate == 0 { // the format is not known yet
		return 0
	}
	return time.Duration(l.samples) * time.Second / time.Duration(l.rate)
}

// endTurn queues the final result of a turn that ended without a Finalize.
func (l *asrSession) endTurn(messages []any) {
	for _, m := range messages {
		l.queue(l.script.PartialLag, m)
	}
	l.turn++
	l.words, l.texts, l.from = nil, "", l.last
}

// finish queues the responses to a Finalize.
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
		return // the connection stays open
	}
	if len(due) > 0 {
		l.turn++
	}
	l.words, l.texts, l.from = nil, "", u.end
}

func (l *asrSession) understood() transcript {
	u := transcript{
		words: l.words, texts: l.texts, start: l.from, end: l.from, upTo: l.upTo(), last: l.last, turn: l.turn,
	}
	if n := len(l.words); n > 0 {
		u.start, u.end = l.words[0].Start, l.words[n-1].End
	}
	return u
}

func (l *asrSession) queue(lag time.Duration, m any) {
	select {
	case l.due <- result{time.Now().Add(lag), m}:
	default: // the writer has stopped, and the connection is about to end
	}
}

// send writes results in order when they are due.
func (l *asrSession) send(ctx context.Context, out writer) {
	for n := 0; ; {
		select {
		case r := <-l.due:
			if end, ok := r.m.(closing); ok {
				out.close(end.code)
				return
			}
			if l.fault == Stall || l.fault.stops() && n > 1 || !wait(ctx, time.Until(r.at)) {
				continue
			}
			if l.fault == Garble {
				_ = out.write("{garbled")
				return
			}
			if out.write(r.m) != nil {
				return
			}
			n++
		case <-ctx.Done():
			return
		}
	}
}
