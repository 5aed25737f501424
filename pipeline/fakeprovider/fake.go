// Package fakeprovider serves fake providers on loopback with scripted delays and faults, for the production clients.
// Recognizers: Deepgram (two protocols), AssemblyAI, OpenAI (two protocols), Soniox, Azure, Yandex. Models: OpenAI
// (two protocols), Anthropic, Gemini. Voices: ElevenLabs, Cartesia, Deepgram, OpenAI, Azure, Soniox, Yandex. Audio
// carries each word as tones (package media/tone), so the recognizers understand every word exactly.
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

	"github.com/parley-voice/parley/media/tone"
)

// A Script defines the behavior of the providers. The zero value responds at once.
type Script struct {
	PartialLag time.Duration // delay from the end of a word to the interim result that contains it
	FinalLag   time.Duration // delay from Finalize to the final result
	FirstToken time.Duration // delay from the request to the first token
	TokenGap   time.Duration // delay between tokens
	FirstByte  time.Duration // delay from the first text to the first speech
	// LateBy is the delay of the faults Late and Slow; 0 means 3 s.
	LateBy time.Duration
	// LeadingSilence is the silence before the first speech.
	LeadingSilence time.Duration
	// Reply returns the model's answer to messages, of which the last is the newest. nil answers "you said "
	// and the last message.
	Reply func(messages []Message) string
	// Call returns the name and the JSON arguments of a tool call. If Call is nil or the name is empty, the model
	// calls only a tool that the request requires.
	Call func(messages []Message) (name, arguments string)
	// Finish returns how the model's answer ends; nil means FinishStop.
	Finish func(messages []Message) Finish
	// Fault returns the fault of the n-th request (from 0) to a provider; nil means none.
	Fault func(p Provider, n int) Fault
	// NewDecoder returns the decoder of a recognizer's audio with a sample rate in Hz; nil decodes tone words.
	NewDecoder func(rate int) Decoder
}

// A Decoder recognizes words in a stream of audio. One goroutine uses it.
type Decoder interface {
	// Decode processes the next audio and returns the words that ended in it. Times count from the first sample.
	Decode(pcm []int16) []tone.Word
}

func (s Script) newDecoder(rate int) Decoder {
	if s.NewDecoder != nil {
		return s.NewDecoder(rate)
	}
	return tone.NewDecoder(rate)
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

// A Finish is the reason for the end of a model's answer.
type Finish string

// Ends of answers.
const (
	FinishStop    Finish = ""
	FinishLength  Finish = "length"         // the answer reached the token limit
	FinishFilter  Finish = "content_filter" // the content filter ended the answer
	FinishRefusal Finish = "refusal"        // the model declined; its answer is the text of the refusal
)

// A Provider is a kind of provider.
type Provider string

// Providers.
const (
	ASR Provider = "asr"
	LLM Provider = "llm"
	TTS Provider = "tts"
)

// A Fault is a scripted failure of a provider.
type Fault string

// Faults.
const (
	None   Fault = ""
	Refuse Fault = "refuse" // the response is 503
	Absent Fault = "absent" // the response is 404: unknown model or voice
	Busy   Fault = "busy"   // the response is 429 with Retry-After: 2
	Drop   Fault = "drop"   // the connection is closed in the middle of the response
	Reset  Fault = "reset"  // like Drop, with a TCP reset
	Hang   Fault = "hang"   // the server accepts the connection but never responds to the request
	Stall  Fault = "stall"  // the server accepts the request but sends no data
	Freeze Fault = "freeze" // no data follows after the first part
	Garble Fault = "garble" // the response is malformed
	Late   Fault = "late"   // final results of a recognizer are late
	Mute   Fault = "mute"   // final results of a recognizer never come
	Slow   Fault = "slow"   // the first token or the first speech is late
	// HalfOpen leaves the connection open but stops reading and writing after the first part. The server then
	// does not respond to pings or to a close.
	HalfOpen Fault = "half-open"
)

// Faults returns all faults.
func Faults() []Fault {
	return []Fault{Refuse, Absent, Busy, Drop, Reset, Hang, Stall, Freeze, Garble, Late, Mute, Slow, HalfOpen}
}

// cuts reports whether the connection ends in the middle of a response.
func (f Fault) cuts() bool { return f == Drop || f == Reset }

// stops reports whether no data follows after the first part of a response.
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

// Received counts the data from clients and the answers to it, in the units that providers charge for.
type Received struct {
	Sound      time.Duration // audio to recognizers, counted at the end of a connection
	Characters int           // characters of text to voices; blank texts do not count
	// The tokens are those of finished answers. PromptTokens includes CachedTokens.
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

// Serve serves the providers on l. Close closes l.
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
	mux.HandleFunc("GET /tts/cognitiveservices/websocket/v2", s.speakAzure) // path for Azure resources with a custom domain
	mux.HandleFunc("GET /tts/cognitiveservices/websocket/v1", s.speakAzure) // text as SSML
	mux.HandleFunc("POST /tts/v3/utteranceSynthesis", s.speakYandex)
	protocols := new(http.Protocols) // gRPC requires HTTP/2
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	s.http = &http.Server{
		ReadHeaderTimeout: 5 * time.Second, Protocols: protocols,
		BaseContext: func(net.Listener) context.Context { return ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.wg.Add(1) // Shutdown does not wait for hijacked connections, so Close waits for wg
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

// refuse handles faults that occur before a response begins. It returns false for all other faults.
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

// lateBy returns the delay of the faults Late and Slow.
func (s Script) lateBy() time.Duration { return cmp.Or(s.LateBy, 3*time.Second) }

// cut closes the connection in the middle of a response.
func (f Fault) cut(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		f.end(conn)
		_ = conn.Close() // the fault requires an aborted response
	}
}

// end prepares the connection so that closing it sends a TCP reset if the fault is Reset.
func (f Fault) end(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok && f == Reset {
		_ = tcp.SetLinger(0)
	}
}

// accept upgrades a request to a WebSocket. The caller calls done to close the connection. The end of the request's
// context closes it, too, so that a blocked reader returns.
func accept(w http.ResponseWriter, r *http.Request) (conn *websocket.Conn, done func(), err error) {
	u := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	if conn, err = u.Upgrade(w, r, nil); err != nil {
		return nil, nil, err
	}
	hang := func() { _ = conn.Close() }
	unhook := context.AfterFunc(r.Context(), hang)
	return conn, func() { unhook(); hang() }, nil
}
