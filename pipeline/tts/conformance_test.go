package tts

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

// names lists the voices under test.
func names() []string {
	return []string{
		"elevenlabs", "elevenlabs warm", "deepgram", "deepgram warm", "cartesia", "openai", "openai wav", "openai events",
		"azure", "azure warm", "yandex", "soniox", "soniox warm",
	}
}

// An env is one voice and the fake provider that serves it.
type env struct {
	pipeline.Voice
	fakes *fakeprovider.Server
	close func()
}

func open(name string, script fakeprovider.Script) env {
	n := fakeprovider.NewNet()
	fakes := fakeprovider.Serve(n, script)
	client := &http.Client{Transport: &http.Transport{DialContext: n.Dial}}
	warm := &Pool{}
	shared := &Cartesia{URL: "ws://fake/tts/websocket", Key: "canary", Dial: n.Dial}
	openai := OpenAI{URL: "http://fake/v1", Key: "canary", Client: client}
	wav, events := openai, openai
	wav.Format, events.Events = "wav", true
	eleven := ElevenLabs{URL: "ws://fake", Key: "canary", Dial: n.Dial}
	deepgram := Deepgram{URL: "ws://fake/v1/speak", Key: "canary", Dial: n.Dial}
	azure := Azure{URL: "ws://fake/cognitiveservices/websocket/v2", Key: "canary", Dial: n.Dial}
	soniox := Soniox{URL: "ws://fake/tts-websocket", Key: "canary", Dial: n.Dial}
	warmEleven, warmDeepgram, warmAzure, warmSoniox := eleven, deepgram, azure, soniox
	warmEleven.Warm, warmDeepgram.Warm, warmAzure.Warm, warmSoniox.Warm = warm, warm, warm, warm
	return env{map[string]pipeline.Voice{
		"elevenlabs": eleven, "elevenlabs warm": warmEleven, "deepgram": deepgram, "deepgram warm": warmDeepgram,
		"cartesia": shared, "openai": openai, "openai wav": wav, "openai events": events,
		"azure": azure, "azure warm": warmAzure, "soniox": soniox, "soniox warm": warmSoniox, "yandex": Yandex{URL: "http://fake", Key: "canary", Client: client},
	}[name], fakes, func() {
		_ = shared.Close()
		_ = warm.Close()
		client.CloseIdleConnections()
		_ = fakes.Close()
	}}
}

// each runs test once per voice, each time in a synctest bubble.
func each(t *testing.T, script fakeprovider.Script, test func(t *testing.T, name string, s env)) {
	t.Helper()
	for _, name := range names() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(name, script)
				defer s.close()
				test(t, name, s)
			})
		})
	}
}

func first(f fakeprovider.Fault) fakeprovider.Script {
	s := fakeprovider.Typical()
	s.Fault = func(_ fakeprovider.Provider, n int) fakeprovider.Fault {
		if n == 0 {
			return f
		}
		return fakeprovider.None
	}
	return s
}

func heard(pcm []int16, rate int) string {
	words := tone.NewDecoder(rate).Decode(append(slices.Clone(pcm), make([]int16, rate/10)...))
	return texts(words, func(w tone.Word) string { return w.Text })
}

func TestVoices(t *testing.T) {
	for _, rate := range []int{8000, 16000} {
		each(t, fakeprovider.Typical(), func(t *testing.T, _ string, s env) {
			t.Helper()
			for range 3 { // reused connections must behave like new ones
				pcm, words, err := speak(t.Context(), s, rate, "Hel", "lo there, my fri", "end. How are", " you?")
				if err != nil {
					t.Fatal(err)
				}
				if got := heard(pcm, rate); got != "hello there, my friend. how are you?" {
					t.Errorf("at %d Hz: heard %q", rate, got)
				}
				if got := texts(words, func(w pipeline.Word) string { return w.Text }); got != "Hello there, my friend. How are you?" {
					t.Errorf("at %d Hz: words %q", rate, got)
				}
				if !slices.IsSortedFunc(words, func(a, b pipeline.Word) int { return int(a.Start - b.Start) }) {
					t.Errorf("times go back: %v", words)
				}
				if end, length := words[len(words)-1].End, time.Duration(len(pcm))*time.Second/time.Duration(rate); end > length+10*time.Millisecond || end < length/2 {
					t.Errorf("the last word ends at %v of %v", end, length)
				}
			}
		})
	}
}

func TestVoicesThatRefuse(t *testing.T) {
	for fault, status := range map[fakeprovider.Fault]int{fakeprovider.Refuse: 503, fakeprovider.Absent: 404, fakeprovider.Busy: 429} {
		each(t, first(fault), func(t *testing.T, _ string, s env) {
			t.Helper()
			_, _, err := speak(t.Context(), s, 8000, "one two three four five six.")
			var refused *pipeline.RefusedError
			if !errors.As(err, &refused) || refused.Status != status || (refused.RetryAfter == 2*time.Second) != (fault == fakeprovider.Busy) || refused.IsRequestFault() != (fault == fakeprovider.Absent) {
				t.Errorf("%s: %v", fault, err)
			}
			if strings.Contains(err.Error(), "canary") {
				t.Errorf("error contains a secret: %v", err)
			}
			recovers(t, s)
		})
	}
}

func TestVoicesThatBreak(t *testing.T) {
	for _, fault := range []fakeprovider.Fault{fakeprovider.Drop, fakeprovider.Reset, fakeprovider.Garble} {
		each(t, first(fault), func(t *testing.T, _ string, s env) {
			t.Helper()
			pcm, _, err := speak(t.Context(), s, 8000, "one two three four five six.")
			if err == nil || strings.Contains(err.Error(), "canary") || (fault != fakeprovider.Garble) != (len(pcm) > 0) {
				t.Errorf("%s: %v after %d samples", fault, err, len(pcm))
			}
			recovers(t, s)
		})
	}
}

func TestVoicesThatStall(t *testing.T) {
	for _, fault := range []fakeprovider.Fault{fakeprovider.Stall, fakeprovider.Freeze, fakeprovider.HalfOpen, fakeprovider.Slow} {
		each(t, first(fault), func(t *testing.T, _ string, s env) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			began := time.Now()
			pcm, _, _ := speak(ctx, s, 8000, "one two three four five six.")
			if (fault == fakeprovider.Freeze || fault == fakeprovider.HalfOpen) != (len(pcm) > 0) || time.Since(began) != 3*time.Second {
				t.Errorf("%s: %d samples after %v", fault, len(pcm), time.Since(began))
			}
			recovers(t, s)
		})
	}
}

// TestSharedSocket checks that closing one utterance does not affect others on the same
// connection.
func TestSharedSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open("cartesia", fakeprovider.Typical())
		defer s.close()
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
			_, _, _ = speak(ctx, s, 8000, "one two three four five six.")
			cancel()
			waits, err := s.Open(t.Context(), pipeline.Style{Rate: 8000}) // no text comes for this utterance
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(2 * time.Second)
			_ = waits.Close()
		}
		recovers(t, s)
		if n := s.fakes.Requests(fakeprovider.TTS); n != 1 {
			t.Errorf("%d connections, want one", n)
		}
	})
}

// TestSlowText checks that no text is lost if the model pauses within its answer.
func TestSlowText(t *testing.T) {
	const text = "one two three. four five six. seven eight nine. ten."
	for _, gap := range []time.Duration{300 * time.Millisecond, 900 * time.Millisecond, 3 * time.Second} {
		each(t, fakeprovider.Typical(), func(t *testing.T, _ string, s env) {
			t.Helper()
			sp, err := s.Open(t.Context(), pipeline.Style{Rate: 8000})
			if err != nil {
				t.Fatal(err)
			}
			wrote := make(chan error, 1)
			go func() {
				var err error
				for _, piece := range strings.SplitAfter(text, ". ") {
					err = errors.Join(err, sp.Write(piece))
					<-time.After(gap)
				}
				wrote <- errors.Join(err, sp.Flush())
			}()
			var pcm []int16
			var words []pipeline.Word
			for got, err := range sp.Audio() {
				if err != nil {
					t.Errorf("after %v: %v", gap, err)
				}
				pcm, words = append(pcm, got.PCM...), append(words, got.Words...)
			}
			all := strings.ReplaceAll(heard(pcm, 8000), "~", " ") // the fake provider leaves no pause between contexts
			if err := errors.Join(<-wrote, sp.Close()); err != nil || all != text {
				t.Errorf("after %v: heard %q, %v", gap, all, err)
			}
			end := time.Duration(len(pcm)) * time.Second / 8000
			if got := texts(words, func(w pipeline.Word) string { return w.Text }); got != text || words[len(words)-1].Start < end*3/4 || words[len(words)-1].End > end+10*time.Millisecond {
				t.Errorf("after %v: words %v of %v", gap, words, end)
			}
		})
	}
}

// TestManyUtterances checks that a voice accepts any number of utterances per minute.
func TestManyUtterances(t *testing.T) {
	each(t, fakeprovider.Typical(), func(t *testing.T, name string, s env) {
		t.Helper()
		for range 30 {
			recovers(t, s)
		}
		if n := s.fakes.Requests(fakeprovider.TTS); name == "deepgram warm" && n > 10 {
			t.Errorf("%d connections for 30 utterances", n)
		}
	})
}

// TestLongAnswer checks that a long answer is spoken completely and starts early.
func TestLongAnswer(t *testing.T) {
	each(t, fakeprovider.Typical(), func(t *testing.T, _ string, s env) {
		t.Helper()
		began, first := time.Now(), time.Duration(0)
		sp, err := s.Open(t.Context(), pipeline.Style{Rate: 8000})
		if err != nil {
			t.Fatal(err)
		}
		const clauses = 60
		wrote := make(chan error, 1)
		go func() {
			for range clauses {
				if err := sp.Write("this is it now. "); err != nil {
					wrote <- err
					return
				}
				<-time.After(100 * time.Millisecond)
			}
			wrote <- sp.Flush()
		}()
		words := 0
		for got, err := range sp.Audio() {
			if err != nil {
				t.Fatal(err)
			}
			if words += len(got.Words); words > 20 && first == 0 {
				first = time.Since(began)
			}
		}
		if err := errors.Join(<-wrote, sp.Close()); err != nil || words != 4*clauses || first > 4*time.Second {
			t.Errorf("%d words, of which the twentieth after %v: %v", words, first, err)
		}
	})
}

// TestVoicesThatHang checks that the end of the context ends a request that gets no response, and
// that the voice then works again.
func TestVoicesThatHang(t *testing.T) {
	each(t, first(fakeprovider.Hang), func(t *testing.T, _ string, s env) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, cancel)
		began := time.Now()
		if pcm, _, _ := speak(ctx, s, 8000, "one two three four five six."); len(pcm) > 0 || time.Since(began) != 2*time.Second {
			t.Errorf("%d samples after %v", len(pcm), time.Since(began))
		}
		recovers(t, s)
	})
}

func recovers(t *testing.T, s env) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	pcm, _, err := speak(ctx, s, 8000, "still here.")
	if got := heard(pcm, 8000); err != nil || got != "still here." {
		t.Errorf("then: %q, %v", got, err)
	}
}

// TestCancel checks that a closed utterance ends at once and leaves no sound in the next one.
func TestCancel(t *testing.T) {
	each(t, fakeprovider.Typical(), func(t *testing.T, name string, s env) {
		t.Helper()
		sp, err := s.Open(t.Context(), pipeline.Style{Rate: 8000})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(sp.Write("one two three four five. "), sp.Flush()); err != nil {
			t.Fatal(err)
		}
		for _, err := range sp.Audio() {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		began := time.Now()
		if err := sp.Close(); err != nil || time.Since(began) > 0 {
			t.Errorf("closed after %v: %v", time.Since(began), err)
		}
		recovers(t, s)
		if n := s.fakes.Requests(fakeprovider.TTS); name == "cartesia" && n != 1 {
			t.Errorf("%d connections, want one", n)
		}
	})
}

// TestPool checks that an utterance after the first does not wait for a handshake.
func TestPool(t *testing.T) {
	for _, name := range names() {
		if !strings.HasSuffix(name, " warm") {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			var hangs atomic.Bool
			script := fakeprovider.Typical()
			script.Fault = func(fakeprovider.Provider, int) fakeprovider.Fault {
				if hangs.Load() {
					return fakeprovider.Hang
				}
				return fakeprovider.None
			}
			s := open(name, script)
			defer s.close()
			recovers(t, s)
			synctest.Wait()
			hangs.Store(true)
			began := time.Now()
			sp, err := s.Open(t.Context(), pipeline.Style{Rate: 8000})
			if err != nil || time.Since(began) > 0 {
				t.Fatalf("%s: open after %v: %v", name, time.Since(began), err)
			}
			_ = sp.Close()
		})
	}
}

// TestPoolCloses checks that unused connections are closed.
func TestPoolCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, w := fakeprovider.NewNet(), &Pool{}
		fakes := fakeprovider.Serve(n, fakeprovider.Typical())
		defer func() { _ = errors.Join(w.Close(), fakes.Close()) }()
		recovers(t, env{Voice: ElevenLabs{URL: "ws://fake", Dial: n.Dial, Warm: w}})
		synctest.Wait()
		ready := func() (all int) {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, p := range w.entries {
				all += len(p.ready)
			}
			return all
		}
		<-time.After(50 * time.Second)
		if n := ready(); n != 1 {
			t.Errorf("%d are ready after 50 s", n)
		}
		<-time.After(25 * time.Second)
		if n := ready(); n != 0 {
			t.Errorf("%d are ready after 75 s", n)
		}
	})
}

// TestPoolDropsDead checks that a connection closed by the provider is not reused.
func TestPoolDropsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &Pool{}
		var made atomic.Int32
		n := fakeprovider.NewNet()
		fakes := fakeprovider.Serve(n, fakeprovider.Typical())
		voice := ElevenLabs{URL: "ws://fake", Dial: func(ctx context.Context, network, addr string) (c net.Conn, err error) {
			made.Add(1)
			return n.Dial(ctx, network, addr)
		}, Warm: w}
		for range 2 {
			if _, _, err := speak(t.Context(), voice, 8000, "hello."); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			for _, p := range w.entries {
				for _, s := range p.ready {
					_ = s.conn.NetConn().Close()
				}
			}
			synctest.Wait()
		}
		if made.Load() < 3 {
			t.Errorf("%d connections", made.Load())
		}
		_ = w.Close()
		_ = fakes.Close()
	})
}
