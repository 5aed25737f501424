// Package fakeprovider serves fake providers on loopback with scripted delays and faults:
// recognizers (Deepgram's two protocols, AssemblyAI, OpenAI's two protocols, Soniox, Azure,
// Yandex), a model (OpenAI's two protocols, Anthropic, Gemini) and voices (ElevenLabs,
// Cartesia, Deepgram, OpenAI, Azure, Soniox, Yandex). Words are encoded as tones
// (media/tone), so the recognizer understands exactly what was transmitted. The production
// clients connect to it.
package fakeprovider

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

// A Script defines the behavior of the providers. The zero value responds at once.
type Script struct {
	PartialLag time.Duration // from the end of a word to the interim result with it
	FinalLag   time.Duration // from Finalize to the final result
	FirstToken time.Duration // from the request to the first token
	TokenGap   time.Duration // between tokens
	FirstByte  time.Duration // from the first text to the first speech
	// LateBy is the delay of the faults Late and Slow; 0 means 3 s.
	LateBy time.Duration
	// LeadingSilence is the silence before the first speech.
	LeadingSilence time.Duration
	// Reply returns the model's answer to messages, newest last; nil repeats the last
	// message.
	Reply func(messages []Message) string
	// Call returns a tool call with JSON arguments; an empty name means none. nil makes no
	// calls.
	Call func(messages []Message) (name, arguments string)
	// Finish returns how the model's answer ends; nil means FinishStop.
	Finish func(messages []Message) Finish
	// Fault returns the fault of the n-th request (from 0) to a provider; nil means none.
	Fault func(p Provider, n int) Fault
}

// Typical returns a script with the delays that the latency targets assume.
func Typical() Script {
	return Script{
		PartialLag: 100 * time.Millisecond, FinalLag: 150 * time.Millisecond,
		FirstToken: 200 * time.Millisecond, TokenGap: 10 * time.Millisecond,
		FirstByte: 100 * time.Millisecond,
	}
}

// A Message is one message to the model.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// A Finish is the end of a model's answer.
type Finish string

// Ends of answers.
const (
	FinishStop    Finish = ""
	FinishLength  Finish = "length"         // the answer reached the token limit
	FinishFilter  Finish = "content_filter" // the content filter ended the answer
	FinishRefusal Finish = "refusal"        // the answer is the text with which the model declines
)

// A Provider is the kind of a provider.
type Provider string

// Providers.
const (
	ASR Provider = "asr"
	LLM Provider = "llm"
	TTS Provider = "tts"
)

// A Fault is a failure of a provider.
type Fault string

// Faults.
const (
	None   Fault = ""
	Refuse Fault = "refuse" // 503 to the request
	Absent Fault = "absent" // 404 to the request: unknown model or voice
	Busy   Fault = "busy"   // 429 to the request with Retry-After: 2
	Drop   Fault = "drop"   // the connection is closed in the middle of the response
	Reset  Fault = "reset"  // like Drop, with a TCP reset
	Hang   Fault = "hang"   // the connection is accepted and its request never answered
	Stall  Fault = "stall"  // the request is accepted and no data follows
	Freeze Fault = "freeze" // no data follows after the first part
	Garble Fault = "garble" // the response is malformed
	Late   Fault = "late"   // final results of a recognizer are late
	Mute   Fault = "mute"   // final results of a recognizer never come
	Slow   Fault = "slow"   // the first token or the first speech is late
	// HalfOpen leaves the connection open but stops reading and writing after the first
	// part: pings and close requests are not answered.
	HalfOpen Fault = "half-open"
)

// Faults returns all faults.
func Faults() []Fault {
	return []Fault{Refuse, Absent, Busy, Drop, Reset, Hang, Stall, Freeze, Garble, Late, Mute, Slow, HalfOpen}
}

// cuts reports whether the connection ends in the middle of a response. stops reports whether
// no data follows after the first part.
func (f Fault) cuts() bool  { return f == Drop || f == Reset }
func (f Fault) stops() bool { return f == Freeze || f == HalfOpen }

func (f Fault) refuses() bool { return f == Refuse || f == Absent || f == Busy || f == Hang }

// A Server serves the fake providers until Close.
type Server struct {
	script Script
	http   *http.Server
	listen net.Listener
	wg     sync.WaitGroup

	mu       sync.Mutex
	count    map[Provider]int
	received Received
}

// Received is what clients sent to the providers, in the units that providers charge for.
type Received struct {
	Sound      time.Duration // of recognizers whose connection has ended
	Characters int           // of text for voices that is not blank
	// Tokens of finished answers; CachedTokens are part of PromptTokens.
	PromptTokens, CachedTokens, CompletionTokens int
}

// Received returns the sums of all requests so far.
func (s *Server) Received() Received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.received
}

func (s *Server) receive(r Received) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received.Sound += r.Sound
	s.received.Characters += r.Characters
	s.received.PromptTokens += r.PromptTokens
	s.received.CachedTokens += r.CachedTokens
	s.received.CompletionTokens += r.CompletionTokens
}

// Start serves the providers on addr, such as "127.0.0.1:0".
func Start(ctx context.Context, addr string, script Script) (*Server, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("fake providers: %w", err)
	}
	return Serve(l, script), nil
}

// Serve serves the providers on l, which Close closes.
func Serve(l net.Listener, script Script) *Server {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{script: script, listen: l, count: map[Provider]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/listen", refusesModel(s.listenASR(10*time.Second, newDeepgram)))
	mux.HandleFunc("GET /v2/listen", refusesModel(s.listenASR(0, newFlux)))
	mux.HandleFunc("GET /v3/ws", s.listenASR(0, newAssembly))
	mux.HandleFunc("GET /v1/realtime", s.transcribe)
	mux.HandleFunc("POST /v1/audio/transcriptions", s.transcribeFile)
	mux.HandleFunc("GET /transcribe-websocket", s.transcribeSoniox)
	mux.HandleFunc("GET /stt/speech/universal/v2", s.transcribeAzure)
	mux.HandleFunc("POST /speechkit.stt.v3.Recognizer/RecognizeStreaming", s.transcribeYandex)
	chats := s.answer(func() protocol { return &chat{} })
	mux.HandleFunc("POST /v1/chat/completions", chats)
	mux.HandleFunc("POST /v1/responses", s.answer(func() protocol { return responses{} }))
	mux.HandleFunc("POST /v1/messages", s.answer(func() protocol { return anthropic{} }))
	mux.HandleFunc("POST /v1beta/models/{call}", s.answer(func() protocol { return gemini{} }))
	mux.HandleFunc("POST /openai/deployments/{model}/chat/completions", chats)
	mux.HandleFunc("GET /v1/text-to-speech/{voice}/stream-input", s.speak)
	mux.HandleFunc("GET /v1/text-to-speech/{voice}/multi-stream-input", s.speakContexts)
	mux.HandleFunc("POST /v1/text-to-speech/{voice}", s.synthesize)
	mux.HandleFunc("POST /v1/text-to-speech/{voice}/stream", s.synthesize)
	mux.HandleFunc("GET /tts/websocket", s.cartesia)
	mux.HandleFunc("GET /tts-websocket", s.speakSoniox)
	mux.HandleFunc("GET /v1/speak", s.speakDeepgram)
	mux.HandleFunc("POST /v1/audio/speech", s.speech)
	mux.HandleFunc("GET /cognitiveservices/websocket/v2", s.speakAzure)
	mux.HandleFunc("GET /tts/cognitiveservices/websocket/v2", s.speakAzure) // the path of a resource with a domain of its own
	mux.HandleFunc("GET /tts/cognitiveservices/websocket/v1", s.speakAzure) // text as SSML
	mux.HandleFunc("POST /tts/v3/utteranceSynthesis", s.speakYandex)
	protocols := new(http.Protocols) // gRPC requires HTTP/2
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	s.http = &http.Server{
		ReadHeaderTimeout: 5 * time.Second, Protocols: protocols,
		BaseContext: func(net.Listener) context.Context { return ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.wg.Add(1) // because Shutdown does not wait for hijacked connections
			defer s.wg.Done()
			mux.ServeHTTP(w, r)
		}),
	}
	s.http.RegisterOnShutdown(cancel)
	s.wg.Go(func() {
		defer cancel()
		_ = s.http.Serve(l) // always ErrServerClosed
	})
	return s
}

// Addr returns the host and port of the providers.
func (s *Server) Addr() string { return s.listen.Addr().String() }

// Close closes all connections and waits for them.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx) // cancels requests in progress
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	s.wg.Wait()
	return err
}

// Requests returns the number of requests to a provider.
func (s *Server) Requests(p Provider) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[p]
}

// fault counts a request and returns its fault.
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

// refuse handles faults that occur before a response begins. It returns false for others.
func refuse(w http.ResponseWriter, r *http.Request, f Fault) bool {
	switch f {
	case Refuse:
		http.Error(w, `{"error":{"message":"scripted refusal"}}`, http.StatusServiceUnavailable)
		return true
	case Absent:
		http.Error(w, `{"error":{"message":"no such model"}}`, http.StatusNotFound)
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

// wait waits for d. It returns false if ctx ended first.
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

// lateBy returns the delay of Late and Slow.
func (s Script) lateBy() time.Duration { return cmp.Or(s.LateBy, 3*time.Second) }

// cut closes the connection in the middle of a response.
func (f Fault) cut(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		f.end(conn)
		_ = conn.Close() // the fault requires an aborted response
	}
}

// end makes the close of the connection a reset if the fault is Reset.
func (f Fault) end(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok && f == Reset {
		_ = tcp.SetLinger(0)
	}
}

// accept upgrades a request to a WebSocket. The connection is closed by done, and when the
// request's context ends, which also wakes its reader.
func accept(w http.ResponseWriter, r *http.Request) (conn *websocket.Conn, done func(), err error) {
	u := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	if conn, err = u.Upgrade(w, r, nil); err != nil {
		return nil, nil, err
	}
	hang := func() { _ = conn.Close() }
	unhook := context.AfterFunc(r.Context(), hang)
	return conn, func() { unhook(); hang() }, nil
}
