package tts

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline"
)

// speak sends text in pieces and returns all speech and words.
func speak(ctx context.Context, v pipeline.Voice, rate int, pieces ...string) (pcm []int16, words []pipeline.Word, err error) {
	sp, err := v.Open(ctx, pipeline.Style{Rate: rate})
	if err != nil {
		return nil, nil, err
	}
	defer sp.Close()
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		for _, p := range pieces {
			if sp.Write(p) != nil {
				return
			}
		}
		_ = sp.Flush()
	}()
	for s, err := range sp.Audio() {
		if err != nil {
			_ = sp.Close()
			<-wrote
			return pcm, words, err
		}
		pcm, words = append(pcm, s.PCM...), append(words, s.Words...)
	}
	<-wrote
	return pcm, words, nil
}

func texts[T any](words []T, text func(T) string) string {
	var all []string
	for _, w := range words {
		all = append(all, text(w))
	}
	return strings.Join(all, " ")
}

func TestEspeak(t *testing.T) {
	if _, err := exec.LookPath("espeak-ng"); err != nil {
		t.Skip("espeak-ng is not installed (apt-get install espeak-ng)")
	}
	pcm, words, err := speak(t.Context(), Espeak{}, 8000, "Hello, this is a test of the voice. ", "And this is more.")
	if err != nil {
		t.Fatal(err)
	}
	if d := time.Duration(len(pcm)) * time.Second / 8000; d < 2*time.Second || d > 8*time.Second {
		t.Errorf("the speech lasts %v", d)
	}
	if l := tone.Level(pcm); l < -40 {
		t.Errorf("the speech has %.0f dBFS", l)
	}
	if len(words) != 12 {
		t.Errorf("%d words: %v", len(words), words)
	}
	if _, _, err := speak(t.Context(), Espeak{Path: "no-such-binary"}, 8000, "x"); err == nil || !strings.Contains(err.Error(), "apt-get install") {
		t.Errorf("a missing binary: %v", err)
	}
}

// TestEspeakLanguages checks the voices by language, the speed, and the error for an unknown voice.
func TestEspeakLanguages(t *testing.T) {
	if _, err := exec.LookPath("espeak-ng"); err != nil {
		t.Skip("espeak-ng is not installed (apt-get install espeak-ng)")
	}
	say := func(s pipeline.Style) (time.Duration, error) {
		s.Rate = 8000
		sp, err := Espeak{}.Open(t.Context(), s)
		if err != nil {
			return 0, err
		}
		defer sp.Close()
		if err := errors.Join(sp.Write("бір екі үш төрт бес алты жеті"), sp.Flush()); err != nil {
			return 0, err
		}
		samples := 0
		for got, err := range sp.Audio() {
			if err != nil {
				return 0, err
			}
			samples += len(got.PCM)
		}
		return time.Duration(samples) * time.Second / 8000, nil
	}
	normal, err := say(pipeline.Style{Language: "kk-KZ"})
	fast, err2 := say(pipeline.Style{Language: "kk-KZ", Options: pipeline.Options{Speed: 2}})
	if _, err3 := say(pipeline.Style{Language: "ru-RU"}); errors.Join(err, err2, err3) != nil || fast > normal*2/3 || normal < time.Second {
		t.Errorf("normal %v, fast %v: %v", normal, fast, errors.Join(err, err2, err3))
	}
	for _, voice := range []string{"xx-YY", "../../etc/passwd", "-h"} {
		var refused *pipeline.RefusedError
		if _, err := say(pipeline.Style{Voice: voice}); !errors.As(err, &refused) || !refused.IsRequestFault() {
			t.Errorf("voice %q: %v", voice, err)
		}
	}
}

// TestFlushLimit checks that text rejected by Deepgram causes an error, not silence.
func TestFlushLimit(t *testing.T) {
	d := &deepgramSynthesis{socket: &socket{}, open: []string{"hello"}}
	if _, err := d.onMessage(message{body: []byte(`{"type":"Warning","description":"too many"}`)}); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Errorf("a warning: %v", err)
	}
	d.open = nil
	if _, err := d.onMessage(message{body: []byte(`{"type":"Warning","description":"too many"}`)}); err != nil {
		t.Errorf("a warning of nothing: %v", err)
	}
}

// TestRequestFaults checks that invalid voices and models are distinguished from provider
// failures.
func TestRequestFaults(t *testing.T) {
	eleven := func(body string) error {
		m, err := parseEleven([]byte(body))
		return errors.Join(err, peer{name: "elevenlabs"}.refused(statusOf(m.Error), m.Error+": "+m.Message))
	}
	deepgram := func(body string) error {
		_, err := (&deepgramSynthesis{socket: &socket{}}).onMessage(message{body: []byte(body)})
		return err
	}
	cartesia := func(body string) error {
		m, err := parseCartesia([]byte(body))
		return errors.Join(err, m.refusal(peer{name: "cartesia"}))
	}
	for _, tt := range []struct {
		err  error
		want int // HTTP status; 0 for none
	}{
		{eleven(`{"error":"voice_does_not_exist","message":"A voice","code":1008}`), 400},
		{eleven(`{"error":"quota_exceeded","message":"This","code":1008}`), 402},
		{eleven(`{"error":"invalid_api_key","message":"This"}`), 401},
		{eleven(`{"error":"max_active_conversations","message":"This"}`), 429},
		{eleven(`{"error":"paid_plan_required","message":"Free users cannot use library voices"}`), 400},
		{eleven(`{"error":"system_busy","message":"This"}`), 0},
		{deepgram(`{"type":"Error","description":"no such model","code":"INVALID_MODEL"}`), 400},
		{deepgram(`{"type":"Error","err_msg":"broken","err_code":"NET-0000"}`), 0},
		{cartesia(`{"type":"error","status_code":404,"title":"Invalid model","error_code":"model_not_found"}`), 404},
		{cartesia(`{"type":"error","status_code":429,"title":"Too many"}`), 429},
		{cartesia(`{"type":"error","error_code":"model_sunsetted","title":"Model sunsetted"}`), 400},
		{cartesia(`{"type":"error","error_code":"concurrency_limited","title":"Too many concurrent requests"}`), 429},
		{cartesia(`{"type":"error","error_code":"quota_exceeded","title":"No credits"}`), 402},
		{cartesia(`{"type":"error","error":"broken"}`), 0},
	} {
		var refused *pipeline.RefusedError
		if errors.As(tt.err, &refused); tt.err == nil || (refused != nil) != (tt.want != 0) || refused != nil && refused.Status != tt.want {
			t.Errorf("%v, want %d", tt.err, tt.want)
		}
	}
}

func FuzzWAV(f *testing.F) {
	f.Add([]byte("RIFF$\xf0\xff\x7fWAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x22\x56\x00\x00\x44\xac\x00\x00\x02\x00\x10\x00data\x00\xf0\xff\x7f"))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = wavRate(bytes.NewReader(b)) })
}

// FuzzMessages checks that no message causes a panic.
func FuzzMessages(f *testing.F) {
	f.Add([]byte(`{"audio":"AAAA","alignment":{"chars":["a"," "],"charStartTimesMs":[0,5]},"isFinal":true}`))
	f.Add([]byte(`{"type":"timestamps","word_timestamps":{"words":["a"],"start":[0],"end":[0.1]}}`))
	f.Add([]byte(`{"type":"Flushed"}`))
	f.Add([]byte(`{"stream_id":"1","audio":"AAAA","timestamps":{"characters":["a"],"character_start_times_seconds":[0.1]},"terminated":true}`))
	f.Add([]byte(`{"stream_id":"1","error_code":400,"error_message":"no"}`))
	f.Add([]byte(`{"result":{"audioChunk":{"data":"AAAA"},"wordTimings":[{"word":"a","startMs":"5","lengthMs":"7"}]}}`))
	f.Add([]byte(`{"error":{"grpcCode":3,"httpCode":400,"message":"no"}}`))
	f.Add([]byte("Path: audio.metadata\r\nX-RequestId: x\r\n\r\n{\"Metadata\":[{\"Type\":\"WordBoundary\",\"Data\":{\"text\":{\"Text\":\"a\"}}}]}"))
	f.Add([]byte("\x00\x1bPath: audio\r\nX-RequestId: x\xff"))
	f.Add([]byte("data: {\"type\":\"speech.audio.delta\",\"audio\":\"AAAA\"}\n\ndata: [DONE]\n"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		if m, err := parseEleven(b); err == nil {
			(&elevenSynthesis{rate: telephone}).speech(m)
		}
		if m, err := parseCartesia(b); err == nil {
			(&cartesiaSynthesis{style: pipeline.Style{Rate: telephone}, wake: make(chan struct{}, 1)}).onMessage(m)
		}
		x := &sonioxSynthesis{socket: &socket{}, rate: telephone, active: true, streams: 1, complete: true}
		_, _ = x.onMessage(message{body: b})
		_, _ = parseDeepgram(b)
		for _, kind := range []int{websocket.TextMessage, websocket.BinaryMessage} {
			_, _ = parseAzure(message{kind, b})
			_, _ = (&azureSynthesis{socket: &socket{}, id: "x", rate: telephone}).onMessage(message{kind, b})
		}
		_, _ = io.ReadAll(newAudioEvents(bytes.NewReader(b), new(http.Request)))
		y := &yandexReader{lines: bufio.NewScanner(bytes.NewReader(b))}
		_, _ = io.ReadAll(y)
		retime(spreadWords("a", 0, time.Second), y.Words(), 0)
	})
}

// canceled returns a canceled context.
func canceled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
