package provider

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/asr"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/llm"
	"github.com/parley-voice/parley/pipeline/tts"
)

// interruptions is the number of successive requests that each test interrupts: enough to open
// a breaker four times.
const interruptions = 4 * maxFailures

// clients holds a client for each protocol, all connected to the same fake providers.
type clients struct {
	recognizers map[string]pipeline.Recognizer
	models      map[string]pipeline.Model
	voices      map[string]pipeline.Voice
}

// connect returns the clients. The first requests to each provider fail with the fault. Clients
// with pooled connections may need some more requests.
func connect(t *testing.T, fault fakeprovider.Fault) clients {
	t.Helper()
	n, script := fakeprovider.NewNet(), fakeprovider.Typical()
	script.Fault = func(_ fakeprovider.Provider, n int) fakeprovider.Fault {
		if n < interruptions {
			return fault
		}
		return fakeprovider.None
	}
	fakes := fakeprovider.Serve(n, script)
	client := &http.Client{Transport: &http.Transport{DialContext: n.Dial}}
	shared := &tts.Cartesia{URL: "ws://fake/tts/websocket", Dial: n.Dial}
	warm := &tts.Pool{}
	t.Cleanup(func() {
		if err := errors.Join(shared.Close(), warm.Close()); err != nil {
			t.Error(err)
		}
		client.CloseIdleConnections()
		_ = fakes.Close()
	})
	eleven := tts.ElevenLabs{URL: "ws://fake", Dial: n.Dial}
	deepgram := tts.Deepgram{URL: "ws://fake/v1/speak", Dial: n.Dial}
	openai := tts.OpenAI{URL: "http://fake/v1", Client: client}
	warmEleven, warmDeepgram, events := eleven, deepgram, openai
	warmEleven.Warm, warmDeepgram.Warm, events.Events = warm, warm, true
	return clients{
		recognizers: map[string]pipeline.Recognizer{
			"deepgram": asr.Deepgram{URL: "ws://fake/v1/listen", Dial: n.Dial}, "flux": asr.Flux{URL: "ws://fake/v2/listen", Dial: n.Dial},
			"assemblyai": asr.AssemblyAI{URL: "ws://fake/v3/ws", Dial: n.Dial}, "openai": asr.OpenAI{URL: "ws://fake/v1/realtime", Dial: n.Dial},
		},
		models: map[string]pipeline.Model{"openai": llm.OpenAI{URL: "http://fake/v1", Client: client}},
		voices: map[string]pipeline.Voice{
			"elevenlabs": eleven, "elevenlabs warm": warmEleven, "deepgram": deepgram, "deepgram warm": warmDeepgram,
			"cartesia": shared, "openai": openai, "openai events": events,
		},
	}
}

// A stop is a way to interrupt a request.
type stop struct {
	name   string
	fault  fakeprovider.Fault // fault of the provider during the interrupted requests
	after  time.Duration      // time from the start of the request to the interruption
	closes bool               // interrupt by Close and cancel the context later; otherwise cancel the context
}

func stops() []stop {
	return []stop{
		{"at once", fakeprovider.None, 0, false},
		{"while it connects", fakeprovider.Hang, 50 * time.Millisecond, false},
		{"before the first result", fakeprovider.Slow, 150 * time.Millisecond, false},
		{"before the first result, by close", fakeprovider.Slow, 150 * time.Millisecond, true},
		{"while it sends nothing", fakeprovider.Stall, time.Second, false},
	}
}

// interrupted runs test in a synctest bubble for each client and each stop, with and without a fallback.
func interrupted(t *testing.T, names []string, test func(t *testing.T, name string, e pipeline.Engine, c clients, how stop)) {
	t.Helper()
	for _, name := range names {
		for _, how := range stops() {
			for _, fallback := range []*pipeline.Engine{nil, {Provider: name}} {
				title := name + ", " + how.name
				if fallback != nil {
					title += ", with a fallback"
				}
				t.Run(title, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						test(t, name, pipeline.Engine{Provider: name, Fallback: fallback}, connect(t, how.fault), how)
					})
				})
			}
		}
	}
}

// closed checks that no breaker counted a failure and that no request is still open.
func closed(t *testing.T, g *Guards) {
	t.Helper()
	for key, x := range g.guards {
		if x.breaker.failures > 0 || x.breaker.open || x.slots.active > 0 {
			t.Errorf("%s: %d failures, open %v, %d requests at work", key, x.breaker.failures, x.breaker.open, x.slots.active)
		}
	}
}

// TestInterruptedVoices checks that callers who interrupt the agent before its first sound
// do not open the breaker of the voice.
func TestInterruptedVoices(t *testing.T) {
	names := []string{"elevenlabs", "elevenlabs warm", "deepgram", "deepgram warm", "cartesia", "openai", "openai events"}
	interrupted(t, names, func(t *testing.T, _ string, e pipeline.Engine, c clients, how stop) {
		t.Helper()
		g := &Guards{}
		v := g.Voice(&Clients{Voices: c.voices}, e, nil)
		for range interruptions {
			ctx, cancel := context.WithCancel(t.Context())
			interruptVoice(ctx, t, cancel, v, how)
			cancel()
			synctest.Wait()
		}
		closed(t, g)
		pcm, _, err := speak(t.Context(), v, "one two three four five.")
		heard := tone.NewDecoder(8000).Decode(append(pcm, make([]int16, 800)...))
		if err != nil || len(heard) != 5 {
			t.Errorf("then: heard %v, %v", heard, err)
		}
		synctest.Wait()
		closed(t, g)
	})
}

func interruptVoice(ctx context.Context, t *testing.T, cancel func(), v pipeline.Voice, how stop) {
	t.Helper()
	if how.after == 0 {
		cancel()
	} else if !how.closes {
		time.AfterFunc(how.after, cancel)
	}
	sp, err := v.Open(ctx, pipeline.Style{Rate: 8000})
	if err != nil {
		return
	}
	if how.closes {
		time.AfterFunc(how.after, func() { _ = sp.Close() })
	}
	if sp.Write("one two three four five. ") == nil {
		_ = sp.Flush() // Audio ends early if the voice fails
	}
	for s, err := range sp.Audio() {
		if err == nil && len(s.PCM) > 0 {
			t.Error("got sound before the interruption, want none")
		}
	}
	_ = sp.Close() // a second call does nothing
}

// TestInterruptedModels checks that answers abandoned before the first token do not open
// the breaker of the model.
func TestInterruptedModels(t *testing.T) {
	interrupted(t, []string{"openai"}, func(t *testing.T, _ string, e pipeline.Engine, c clients, how stop) {
		t.Helper()
		g := &Guards{}
		m := g.Model(&Clients{Models: c.models}, e, nil)
		for range interruptions {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(how.after, cancel)
			if how.after == 0 {
				cancel()
			}
			for d, err := range m.Reply(ctx, pipeline.Prompt{Messages: []pipeline.Message{{Text: "hi there"}}}) {
				if err == nil && d.Text != "" {
					t.Error("got an answer before the interruption, want none")
				}
			}
			cancel()
			synctest.Wait()
		}
		closed(t, g)
		var text strings.Builder
		for d, err := range m.Reply(t.Context(), pipeline.Prompt{Messages: []pipeline.Message{{Text: "hi there"}}}) {
			text.WriteString(d.Text)
			if err != nil {
				t.Error(err)
			}
		}
		if text.String() != "you said hi there" {
			t.Errorf("then: %q", text.String())
		}
		closed(t, g)
	})
}

// TestInterruptedRecognizers checks that calls that end before the first result do not
// open the breaker of the recognizer.
func TestInterruptedRecognizers(t *testing.T) {
	interrupted(t, []string{"deepgram", "flux", "assemblyai", "openai"}, func(t *testing.T, name string, e pipeline.Engine, c clients, how stop) {
		t.Helper()
		g := &Guards{}
		for range interruptions {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(how.after, cancel)
			if how.after == 0 {
				cancel()
			}
			rec, err := g.Recognizer(&Clients{Recognizers: c.recognizers}, e, nil).Recognize(ctx, pipeline.Stream{Rate: 8000})
			if err == nil {
				if !how.closes {
					<-ctx.Done()
				}
				if err := rec.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}
			<-ctx.Done()
			synctest.Wait()
		}
		closed(t, g)
		rec, err := g.Recognizer(&Clients{Recognizers: c.recognizers}, e, nil).Recognize(t.Context(), pipeline.Stream{Rate: 8000})
		if err != nil {
			t.Fatal(err)
		}
		if text, err := listen(rec); text != "one two three" || err != nil {
			t.Errorf("%s then: %q, %v", name, text, err)
		}
		synctest.Wait()
		closed(t, g)
	})
}
