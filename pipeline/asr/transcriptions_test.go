package asr

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline"
)

// feed adds audio to a segmenter and returns the segments that add returned.
func feed(s *segmenter, pcm []int16) []segment {
	var all []segment
	n := media.FrameLen(s.rate)
	for ; len(pcm) >= n; pcm = pcm[n:] {
		if full, ok := s.add(pcm[:n]); ok {
			all = append(all, full)
		}
	}
	return all
}

func TestSegmenter(t *testing.T) {
	for _, rate := range []int{8000, 16000} {
		s := &segmenter{rate: rate}
		pause := make([]int16, 3*rate)
		speech, words := tone.Encode(rate, "hello there")
		feed(s, pause)
		if _, ok := s.take(); ok {
			t.Errorf("at %d Hz: speech in silence", rate)
		}
		feed(s, pause)
		if n := len(s.pcm); n > rate {
			t.Errorf("at %d Hz: keeps %d samples of silence", rate, n)
		}
		feed(s, slices.Concat(speech, pause))
		got, ok := s.take()
		from, to := 6*time.Second+words[0].Start, 6*time.Second+words[1].End
		if !ok || got.from > from || got.from < from-300*ms || got.to < to || got.to > to+300*ms {
			t.Fatalf("at %d Hz: %v to %v, want about %v to %v", rate, got.from, got.to, from, to)
		}
		if d := time.Duration(len(got.pcm)) * time.Second / time.Duration(rate); d != got.to-got.from {
			t.Errorf("at %d Hz: %v of audio from %v to %v", rate, d, got.from, got.to)
		}
		var texts []string
		for _, w := range tone.NewDecoder(rate).Decode(got.pcm) {
			texts = append(texts, w.Text)
		}
		if strings.Join(texts, " ") != "hello there" {
			t.Errorf("at %d Hz: %q", rate, texts)
		}
		if _, ok := s.take(); ok {
			t.Errorf("at %d Hz: the same speech twice", rate)
		}
	}
}

// TestLongSpeech checks that long speech is cut between words and that no word is lost.
func TestLongSpeech(t *testing.T) {
	const rate = 8000
	s := &segmenter{rate: rate}
	var said, got []string
	var all []segment
	for len(all) < 3 {
		pcm, _ := tone.Encode(rate, "abcde fghij")
		said = append(said, "abcde", "fghij")
		all = append(all, feed(s, append(pcm, make([]int16, rate/10)...))...)
	}
	last, _ := s.take()
	at := time.Duration(0)
	for _, x := range append(all, last) {
		if d := x.to - x.from; d > maxSegment || x.from < at {
			t.Errorf("segment from %v to %v after %v", x.from, x.to, at)
		}
		at = x.to
		for _, w := range tone.NewDecoder(rate).Decode(append(x.pcm, make([]int16, rate/10)...)) {
			got = append(got, w.Text)
		}
	}
	if !slices.Equal(got, said) {
		t.Errorf("%d words, want %d", len(got), len(said))
	}
}

// TestOrder checks that texts come in the order of the speech, that a late text does not delay the
// answer to Finalize, and that the number of concurrent requests is bounded.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		delays := map[time.Duration]time.Duration{}
		active, most := 0, 0
		var mu sync.Mutex
		began := time.Now()
		s := startSegments(t.Context(), 8000, func(ctx context.Context, x segment) (pipeline.Result, error) {
			mu.Lock()
			n := time.Duration(len(delays))
			delays[n] = 0
			active++
			most = max(most, active)
			mu.Unlock()
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				active--
			}()
			select {
			case <-time.After([]time.Duration{3 * time.Second, 100 * ms, 2 * time.Second, 100 * ms, 100 * ms}[n]):
			case <-ctx.Done():
			}
			return pipeline.Result{Final: true, Text: string(rune('a' + n)), Start: x.from, End: x.to}, ctx.Err()
		})
		go func() {
			for range 5 {
				speech, _ := tone.Encode(8000, "hello")
				for ; len(speech) >= 160; speech = speech[160:] {
					_ = s.WriteFrame(speech[:160])
				}
				_ = s.WriteFrame(make(media.Frame, 160))
				_ = s.Finalize()
				synctest.Wait()
			}
			<-time.After(10 * time.Second)
			_ = s.Close()
		}()
		var got []string
		for r := range s.Results() {
			mark := ""
			if r.Unanswered {
				mark = "!"
			}
			got = append(got, r.Text+mark)
			if d := time.Since(began); r.Unanswered && d != slowTimeout {
				t.Errorf("answered after %v", d)
			}
		}
		if want := []string{"!", "!", "!", "!", "!", "a", "b", "c", "d", "e"}; !slices.Equal(got, want) || s.Close() != nil {
			t.Errorf("%q, %v; want %q", got, s.Close(), want)
		}
		if most > maxInFlight {
			t.Errorf("%d requests at once", most)
		}
	})
}

func TestParseTranscription(t *testing.T) {
	for body, want := range map[string]string{
		`{"text":" Hello there. "}`: "Hello there.",
		`{"text":"","words":[]}`:    "",
		`{"text":"[BLANK_AUDIO]"}`:  "",
		`{"text":"(music)"}`:        "",
		`{"text":"[a] and (b)"}`:    "[a] and (b)",
		`{"text":"Thanks for watching!","segments":[{"text":"Thanks for watching!","no_speech_prob":0.9,"avg_logprob":-1.4}]}`: "",
		`{"text":"Yes.","segments":[{"text":"Yes.","no_speech_prob":0.9,"avg_logprob":-0.2}]}`:                                 "Yes.",
		`{"text":"Yes. Bye!","words":[{"word":"Yes","start":0.1,"end":0.4},{"word":"Bye","start":1.2,"end":1.6}],
		  "segments":[{"text":" Yes.","end":1},{"text":" Bye!","start":1,"end":2,"no_speech_prob":0.9,"avg_logprob":-1.4}]}`: "Yes.",
	} {
		r, err := parseTranscription([]byte(body), time.Second, 3*time.Second)
		if err != nil || r.Text != want {
			t.Errorf("%s: %q, %v", body, r.Text, err)
		}
		for _, w := range r.Words {
			if w.Text == "Bye" || w.Start < time.Second || w.End > 3*time.Second {
				t.Errorf("%s: word %+v", body, w)
			}
		}
	}
	for _, body := range []string{"", "[]", "{}", `{"text":1}`} {
		if _, err := parseTranscription([]byte(body), 0, time.Second); err == nil {
			t.Errorf("%q is accepted", body)
		}
	}
}

func TestTranscriptionFields(t *testing.T) {
	zero := 0.0
	extra := streamOf("whisper-1", "de", "Parley")
	extra.Options.Temperature = &zero
	extra.Options.Extra = map[string]any{"response_format": "json", "prompt": "Hallo", "stream": true}
	for _, c := range []struct {
		stream pipeline.Stream
		want   string
	}{
		{streamOf("whisper-1", "kk-KZ", "Parley", "Astana"), "model=whisper-1 response_format=verbose_json timestamp_granularities[]=word timestamp_granularities[]=segment language=kk prompt=Parley, Astana"},
		{streamOf("whisper-1", "kk ru"), "model=whisper-1 response_format=verbose_json timestamp_granularities[]=word timestamp_granularities[]=segment"},
		{streamOf("gpt-transcribe", "kk ru", "Parley"), "model=gpt-transcribe response_format=json languages[]=kk languages[]=ru keywords[]=Parley"},
		{streamOf("gpt-4o-transcribe", "de-DE", "Parley"), "model=gpt-4o-transcribe response_format=json language=de prompt=Parley"},
		{extra, "model=whisper-1 response_format=json language=de temperature=0 prompt=Hallo"},
	} {
		var got []string
		for _, f := range transcriptionFields(c.stream) {
			got = append(got, f.name+"="+f.value)
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s\nwant %s", text, c.want)
		}
	}
}

func FuzzParseTranscription(f *testing.F) {
	f.Add([]byte(`{"text":"hi","words":[{"word":"hi","start":0.1,"end":9e9}],"segments":[{"text":"hi","no_speech_prob":1,"avg_logprob":-2}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseTranscription(b, time.Second, 2*time.Second)
		if err != nil {
			return
		}
		for _, w := range r.Words {
			if w.Start < time.Second || w.End < w.Start || w.End > 2*time.Second {
				t.Errorf("word %+v", w)
			}
		}
	})
}

var errStopped = errors.New("stopped")

// TestFull checks that the stream ends if the server is slower than the speech.
func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startSegments(t.Context(), 8000, func(ctx context.Context, _ segment) (pipeline.Result, error) {
			<-ctx.Done()
			return pipeline.Result{}, errStopped
		})
		speech, _ := tone.Encode(8000, "hello")
		for range maxPending + 1 {
			for rest := speech; len(rest) >= 160; rest = rest[160:] {
				_ = s.WriteFrame(rest[:160])
			}
			_ = s.Finalize()
			synctest.Wait()
		}
		for range s.Results() {
		}
		if err := s.Close(); !errors.Is(err, errSilent) {
			t.Errorf("%v", err)
		}
	})
}
