package tts

import (
	"bytes"
	"context"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fake"
)

// voices are the voices that the fakes play.
func voices(script fake.Script) (map[string]pipeline.Voice, func()) {
	n := fake.NewNet()
	fakes := fake.Serve(n, script)
	client := &http.Client{Transport: &http.Transport{DialContext: n.Dial}}
	all := map[string]pipeline.Voice{
		"elevenlabs": ElevenLabs{URL: "ws://fake", Key: "canary", Dial: n.Dial},
		"openai":     OpenAI{URL: "http://fake/v1", Key: "canary", Client: client},
	}
	return all, func() {
		client.CloseIdleConnections()
		_ = fakes.Close()
	}
}

// speak says text in pieces and returns all that came.
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
			if sp.Say(p) != nil {
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

func TestVoices(t *testing.T) {
	for _, name := range []string{"elevenlabs", "openai"} {
		for _, rate := range []int{8000, 16000} {
			synctest.Test(t, func(t *testing.T) {
				all, done := voices(fake.Typical())
				defer done()
				pcm, words, err := speak(t.Context(), all[name], rate, "Hel", "lo there, my fri", "end. How are", " you?")
				if err != nil {
					t.Fatal(err)
				}
				heard := tone.NewHearer(rate).Hear(append(pcm, make([]int16, rate/10)...))
				if got := texts(heard, func(w tone.Word) string { return w.Text }); got != "hello there, my friend. how are you?" {
					t.Errorf("%s at %d Hz: heard %q", name, rate, got)
				}
				if got := texts(words, func(w pipeline.Word) string { return w.Text }); got != "Hello there, my friend. How are you?" {
					t.Errorf("%s at %d Hz: words %q", name, rate, got)
				}
				if !slices.IsSortedFunc(words, func(a, b pipeline.Word) int { return int(a.Start - b.Start) }) {
					t.Errorf("%s: times go back: %v", name, words)
				}
				if end, length := words[len(words)-1].End, time.Duration(len(pcm))*time.Second/time.Duration(rate); end > length+10*time.Millisecond || end < length/2 {
					t.Errorf("%s: the last word ends at %v of %v", name, end, length)
				}
			})
		}
	}
}

func TestVoiceFaults(t *testing.T) {
	for _, name := range []string{"elevenlabs", "openai"} {
		for _, fault := range []fake.Fault{fake.Refuse, fake.Drop} {
			synctest.Test(t, func(t *testing.T) {
				all, done := voices(fake.Script{Fault: func(fake.Provider, int) fake.Fault { return fault }})
				defer done()
				_, _, err := speak(t.Context(), all[name], 8000, "one two three four five six.")
				if err == nil || strings.Contains(err.Error(), "canary") {
					t.Errorf("%s %s: %v", name, fault, err)
				}
			})
		}
	}
}

func TestVoiceStallEndsWithItsContext(t *testing.T) {
	for _, name := range []string{"elevenlabs", "openai"} {
		synctest.Test(t, func(t *testing.T) {
			all, done := voices(fake.Script{Fault: func(fake.Provider, int) fake.Fault { return fake.Stall }})
			defer done()
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			began := time.Now()
			pcm, _, _ := speak(ctx, all[name], 8000, "one two three.")
			if len(pcm) > 0 || time.Since(began) != 3*time.Second {
				t.Errorf("%s: %d samples after %v", name, len(pcm), time.Since(began))
			}
		})
	}
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

func TestSplitter(t *testing.T) {
	var s splitter
	var got []string
	for _, piece := range []string{"Hello there, fri", "end. It costs 3.5 euro", "s! Is", " that all right? Ok. Yes"} {
		got = append(got, s.add(piece)...)
	}
	got = append(got, s.end())
	want := []string{"Hello there, friend.", "It costs 3.5 euros!", "Is that all right?", "Ok. Yes"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestSplitterLosesNothing: however text comes, all of it is spoken once.
func TestSplitterLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zé .?!…;:\n]{0,200}`).Draw(t, "text")
		var s splitter
		var got []string
		for rest := []rune(text); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			got = append(got, s.add(string(rest[:n]))...)
			rest = rest[n:]
		}
		got = append(got, s.end())
		if a, b := strings.Join(strings.Fields(strings.Join(got, " ")), " "), strings.Join(strings.Fields(text), " "); strings.ReplaceAll(a, " ", "") != strings.ReplaceAll(b, " ", "") {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

func FuzzWAV(f *testing.F) {
	f.Add([]byte("RIFF$\xf0\xff\x7fWAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x22\x56\x00\x00\x44\xac\x00\x00\x02\x00\x10\x00data\x00\xf0\xff\x7f"))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = wavRate(bytes.NewReader(b)) })
}
