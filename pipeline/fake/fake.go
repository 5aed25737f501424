// Package fake plays the providers: recognizers (Deepgram's two protocols,
// AssemblyAI, OpenAI), a model (OpenAI) and voices (ElevenLabs, Cartesia,
// Deepgram, OpenAI) on loopback, with scripted delays and faults. Words are tones (media/tone), so the recognizer
// understands exactly what came through the line. The clients that talk with it
// are those of production.
package fake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// A Script is how the providers behave. Its zero value answers at once.
type Script struct {
	PartialLag time.Duration // end of a word to the interim result that holds it
	FinalLag   time.Duration // Finalize to the final result
	FirstToken time.Duration // request to the first token
	TokenGap   time.Duration // between tokens
	FirstByte  time.Duration // first text to the first speech
	// LateBy is how late what the faults Late and Slow hold up comes; 0 is 3 s.
	LateBy time.Duration
	// LeadingSilence is how much silence the voice begins with.
	LeadingSilence time.Duration
	// Reply is what the model says to messages, the newest last; nil repeats
	// what it was told.
	Reply func(messages []Message) string
	// Call is the tool call that the model makes of messages, with its arguments
	// in JSON; an empty name is none. nil makes none.
	Call func(messages []Message) (name, arguments string)
	// Fault is what goes wrong with the n-th request (from 0) to a provider;
	// nil for nothing.
	Fault func(p Provider, n int) Fault
}

// Typical is a script with the delays that the latency targets are set for.
func Typical() Script {
	return Script{
		PartialLag: 100 * time.Millisecond, FinalLag: 150 * time.Millisecond,
		FirstToken: 200 * time.Millisecond, TokenGap: 10 * time.Millisecond,
		FirstByte: 100 * time.Millisecond,
	}
}

// A Message is one message that the model is given.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// A Provider is one of those played.
type Provider string

// Providers.
const (
	ASR Provider = "asr"
	LLM Provider = "llm"
	TTS Provider = "tts"
)

// A Fault is how a provider breaks.
type Fault string

// Faults.
const (
	None   Fault = ""
	Refuse Fault = "refuse" // 503 to the request
	Absent Fault = "absent" // 404 to the request: there is no such model or voice
	Busy   Fault = "busy"   // 429 to the request, to be asked again in 2 s
	Drop   Fault = "drop"   // the connection is cut in the middle
	Reset  Fault = "reset"  // likewise, by a TCP reset
	Hang   Fault = "hang"   // the connection is taken, and its request never answered
	Stall  Fault = "stall"  // it is taken, and nothing comes
	Freeze Fault = "freeze" // nothing more comes after the first of it
	Garble Fault = "garble" // what comes is not the protocol
	Late   Fault = "late"   // a recognizer's final results come late
	Mute   Fault = "mute"   // a recognizer's final results never come
	Slow   Fault = "slow"   // a model's first token, or a voice's first speech, comes late
	// HalfOpen leaves the connection open and, after the first of it, neither
	// reads it nor writes to it: no ping is answered, and no leave taken.
	HalfOpen Fault = "half-open"
)

// Faults are all that may go wrong.
func Faults() []Fault {
	return []Fault{Refuse, Absent, Busy, Drop, Reset, Hang, Stall, Freeze, Garble, Late, Mute, Slow, HalfOpen}
}

// cuts says that the connection ends in the middle, and stops that nothing more
// comes after the first of it.
func (f Fault) cuts() bool  { return f == Drop || f == Reset }
func (f Fault) stops() bool { return f == Freeze || f == HalfOpen }

func (f Fault) refuses() bool { return f == Refuse || f == Absent || f == Busy || f == Hang }

// A Server plays the providers until Close.
type Server struct {
	script Script
	http   *http.Server
	listen net.Listener
	wg     sync.WaitGroup

	mu    sync.Mutex
	count map[Provider]int
}

// Start plays the providers on addr, such as "127.0.0.1:0".
func Start(ctx context.Context, addr string, script Script) (*Server, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("fake providers: %w", err)
	}
	return Serve(l, script), nil
}

// Serve plays the providers on l, which Close closes.
func Serve(l net.Listener, script Script) *Server {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{script: script, listen: l, count: map[Provider]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/listen", s.listenASR(deepgram{}))
	mux.HandleFunc("GET /v2/listen", s.listenASR(flux{}))
	mux.HandleFunc("GET /v3/ws", s.listenASR(assembly{}))
	mux.HandleFunc("GET /v1/realtime", s.transcribe)
	mux.HandleFunc("POST /v1/chat/completions", s.chat)
	mux.HandleFunc("GET /v1/text-to-speech/{voice}/stream-input", s.speak)
	mux.HandleFunc("GET /tts/websocket", s.cartesia)
	mux.HandleFunc("GET /v1/speak", s.speakDeepgram)
	mux.HandleFunc("POST /v1/audio/speech", s.speech)
	s.http = &http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.wg.Add(1) // Shutdown does not wait for connections that became WebSockets
			defer s.wg.Done()
			mux.ServeHTTP(w, r)
		}),
	}
	s.http.RegisterOnShutdown(cancel)
	s.wg.Go(func() {
		defer cancel()
		_ = s.http.Serve(l) // ErrServerClosed
	})
	return s
}

// Addr is where the providers listen: host and port.
func (s *Server) Addr() string { return s.listen.Addr().String() }

// Close ends all connections and waits for them.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx) // cancels what goes on
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	s.wg.Wait()
	return err
}

// Requests tells how often a provider was asked.
func (s *Server) Requests(p Provider) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[p]
}

// fault counts a request and tells what goes wrong with it.
func (s *Server) fault(p Provider) Fault {
	s.mu.Lock()
	n := s.count[p]
	s.count[p]++
	s.mu.Unlock()
	if s.script.Fault == nil {
		return None
	}
	return s.script.Fault(p, n)
}

// refused answers a request that is refused or stalls before it begins.
func refused(w http.ResponseWriter, r *http.Request, f Fault) bool {
	switch f {
	case Refuse:
		http.Error(w, `{"error":{"message":"scripted refusal"}}`, http.StatusServiceUnavailable)
		return true
	case Absent:
		http.Error(w, `{"error":{"message":"there is no such model"}}`, http.StatusNotFound)
		return true
	case Busy:
		w.Header().Set("Retry-After", "2")
		http.Error(w, `{"error":{"message":"scripted limit"}}`, http.StatusTooManyRequests)
		return true
	case Hang, Stall:
		<-r.Context().Done()
		return true
	default:
	}
	return false
}

// wait lets d pass; it is false where ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// late is how late something comes that Late or Slow holds up.
func (s Script) late() time.Duration { return cmp.Or(s.LateBy, 3*time.Second) }

// cut breaks the connection off in the middle of an answer, as the fault says.
func (f Fault) cut(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		f.end(conn)
		_ = conn.Close() // that is the fault
	}
}

// end has the closing of a connection reset it, where the fault is that.
func (f Fault) end(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok && f == Reset {
		_ = tcp.SetLinger(0)
	}
}

// accept makes a WebSocket of a request. It is closed by done, and when the
// request's context ends, which wakes who reads it.
func accept(w http.ResponseWriter, r *http.Request) (conn *websocket.Conn, done func(), err error) {
	u := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	if conn, err = u.Upgrade(w, r, nil); err != nil {
		return nil, nil, err
	}
	hang := func() { _ = conn.Close() }
	unhook := context.AfterFunc(r.Context(), hang)
	return conn, func() { unhook(); hang() }, nil
}
