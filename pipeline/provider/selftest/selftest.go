// Package selftest tests configured providers with one short request each, as calls would
// make them: models answer, voices speak, and recognizers hear what a voice said.
package selftest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/provider"
)

const (
	rate        = 8000 // Hz, as on phone calls
	requestTime = 15 * time.Second
	sentence    = "Hello, this is a test of the voice."
	pause       = 400 * time.Millisecond // silence before the final text is requested
	maxSpeech   = 30 * time.Second
)

// A Test is one run over providers.
type Test struct {
	Recognizers map[string]pipeline.Recognizer
	Models      map[string]pipeline.Model
	Voices      map[string]pipeline.Voice
	// Names restricts the run; empty means all.
	Names []string
	// Speak lets every voice say a whole sentence instead of one word.
	Speak bool
	// Listen plays that sentence to every recognizer instead of only opening it.
	Listen bool
	// Language is requested of voices and recognizers, BCP 47; empty for their defaults.
	Language string
	// Text replaces the sentence, for languages other than English.
	Text string
}

// A Result is what one provider did.
type Result struct {
	Name    string        `json:"name"`
	Serves  string        `json:"serves"` // "asr", "llm" or "tts"
	Latency time.Duration `json:"latency_ns"`
	// Detail is the model's answer, the words that a recognizer heard, or the length of the
	// speech.
	Detail string `json:"detail,omitempty"`
	Err    error  `json:"-"`
}

// Run tests the models and voices concurrently, then the recognizers. It calls tell with each result at once, and
// reports whether all providers worked.
func (t Test) Run(ctx context.Context, tell func(Result)) bool {
	speech, ok := t.run(ctx, tell, t.producers(), nil)
	_, heard := t.run(ctx, tell, t.listeners(), speech)
	return ok && heard
}

// A task tests one provider. It returns the speech of a voice.
type task struct {
	name, serves string
	do           func(ctx context.Context, speech map[string][]int16) (Result, []int16)
}

// run executes tasks concurrently. It returns the speech of the voices, and whether all tasks succeeded.
func (t Test) run(ctx context.Context, tell func(Result), tasks []task, speech map[string][]int16) (map[string][]int16, bool) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	spoken, ok := map[string][]int16{}, true
	for _, one := range tasks {
		wg.Go(func() {
			bounded, cancel := context.WithTimeout(ctx, requestTime)
			defer cancel()
			r, pcm := one.do(bounded, speech)
			r.Name, r.Serves = one.name, one.serves
			mu.Lock()
			defer mu.Unlock()
			tell(r)
			if ok = ok && r.Err == nil; len(pcm) > 0 {
				spoken[one.name] = pcm
			}
		})
	}
	wg.Wait()
	return spoken, ok
}

func (t Test) includes(name string) bool { return len(t.Names) == 0 || slices.Contains(t.Names, name) }

func (t Test) producers() []task {
	var all []task
	for _, name := range slices.Sorted(maps.Keys(t.Models)) {
		if t.includes(name) {
			all = append(all, task{name, "llm", func(ctx context.Context, _ map[string][]int16) (Result, []int16) {
				return askModel(ctx, t.Models[name]), nil
			}})
		}
	}
	voices := slices.Sorted(maps.Keys(t.Voices))
	if !t.Listen || slices.ContainsFunc(voices, t.includes) { // otherwise all voices speak for the recognizers
		voices = slices.DeleteFunc(voices, func(name string) bool { return !t.includes(name) })
	}
	for _, name := range voices {
		all = append(all, task{name, "tts", func(ctx context.Context, _ map[string][]int16) (Result, []int16) {
			return t.speak(ctx, t.Voices[name])
		}})
	}
	return all
}

func (t Test) listeners() []task {
	var all []task
	for _, name := range slices.Sorted(maps.Keys(t.Recognizers)) {
		if t.includes(name) {
			all = append(all, task{name, "asr", func(ctx context.Context, speech map[string][]int16) (Result, []int16) {
				return t.hear(ctx, t.Recognizers[name], name, speech), nil
			}})
		}
	}
	return all
}

func askModel(ctx context.Context, m pipeline.Model) Result {
	began := time.Now()
	var r Result
	var text strings.Builder
	for d, err := range m.Reply(ctx, pipeline.Prompt{
		Instructions: "Answer with the word OK.", MaxTokens: 64, Tools: []pipeline.Tool{provider.ProbeTool()},
		Messages: []pipeline.Message{{Role: pipeline.RoleCaller, Text: "OK?"}},
	}) {
		if r.Latency == 0 {
			r.Latency = time.Since(began)
		}
		if err != nil && !errors.Is(err, pipeline.ErrLength) {
			r.Err = err
			return r
		}
		text.WriteString(d.Text)
	}
	if r.Detail = pipeline.Clean(text.String()); r.Detail == "" {
		r.Err = errors.New("the answer has no text")
	}
	return r
}

func (t Test) text() string { return cmp.Or(t.Text, sentence) }

func (t Test) speak(ctx context.Context, v pipeline.Voice) (r Result, pcm []int16) {
	began := time.Now()
	sp, err := v.Open(ctx, pipeline.Style{Rate: rate, Language: t.Language})
	if err != nil {
		return Result{Latency: time.Since(began), Err: err}, nil
	}
	defer func() { _ = sp.Close() }()
	text := "OK."
	if t.Speak || t.Listen {
		text = t.text()
	}
	if err = errors.Join(sp.Write(text), sp.Flush()); err != nil {
		return Result{Latency: time.Since(began), Err: err}, nil
	}
	for s, err := range sp.Audio() {
		if err != nil {
			return Result{Latency: time.Since(began), Err: err}, nil
		}
		if len(pcm) == 0 && len(s.PCM) > 0 {
			r.Latency = time.Since(began)
		}
		if pcm = append(pcm, s.PCM...); time.Duration(len(pcm))*time.Second/rate > maxSpeech {
			break
		}
	}
	switch {
	case ctx.Err() != nil:
		return Result{Latency: time.Since(began), Err: fmt.Errorf("the speech did not end within %v", requestTime)}, nil
	case len(pcm) == 0:
		return Result{Latency: time.Since(began), Err: errors.New("the voice made no sound")}, nil
	}
	r.Detail = fmt.Sprintf("%.1f s of speech", float64(len(pcm))/rate)
	return r, pcm
}

// hear opens a recognizer. With Listen it plays the speech of the voice of the same name, or of
// any other voice.
func (t Test) hear(ctx context.Context, rec pipeline.Recognizer, name string, speech map[string][]int16) Result {
	began := time.Now()
	if p, ok := rec.(pipeline.Prober); ok && !t.Listen {
		err := p.Probe(ctx, pipeline.Stream{Rate: rate, Language: t.Language})
		return Result{Latency: time.Since(began), Detail: "silence transcribed", Err: err}
	}
	stream, err := rec.Recognize(ctx, pipeline.Stream{Rate: rate, Language: t.Language})
	opened := time.Since(began)
	if err != nil {
		return Result{Latency: opened, Err: err}
	}
	if !t.Listen {
		return Result{Latency: opened, Detail: "stream opened", Err: stream.Close()}
	}
	pcm := speech[name]
	for _, other := range slices.Sorted(maps.Keys(speech)) {
		if len(pcm) == 0 {
			pcm = speech[other]
		}
	}
	if len(pcm) == 0 {
		return Result{Latency: opened, Err: errors.Join(errors.New("no voice could speak the test sentence"), stream.Close())}
	}
	return listen(ctx, stream, pcm)
}

// listen plays pcm in real time and waits for the final text. The latency is that of the
// final text.
func listen(ctx context.Context, stream pipeline.Recognition, pcm []int16) Result {
	pcm = append(slices.Clip(pcm), make([]int16, rate*int(pause/time.Millisecond)/1000)...)
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer wg.Wait()
	defer cancel()
	asked := make(chan time.Time, 1)
	wg.Go(func() { play(ctx, stream, pcm, asked) })
	var text []string
	for {
		select {
		case res, more := <-stream.Results():
			if !more {
				return Result{Err: cmp.Or(stream.Close(), errors.New("the stream ended without a final text"))}
			}
			if res.Final && res.Text != "" {
				text = append(text, res.Text)
			}
			if res.Unanswered {
				return Result{Err: errors.Join(errors.New("the final text did not come"), stream.Close())}
			}
			if res.Finalized {
				r := Result{Latency: time.Since(<-asked), Detail: pipeline.Clean(strings.Join(text, " "))}
				if r.Err = stream.Close(); r.Err == nil && r.Detail == "" {
					r.Err = errors.New("no words were heard")
				}
				return r
			}
		case <-ctx.Done():
			return Result{Err: errors.Join(ctx.Err(), stream.Close())}
		}
	}
}

// play writes frames at their pace, then requests the final text.
func play(ctx context.Context, stream pipeline.Recognition, pcm []int16, asked chan<- time.Time) {
	tick := time.NewTicker(media.FrameTime)
	defer tick.Stop()
	n := media.FrameLen(rate)
	for ; len(pcm) >= n; pcm = pcm[n:] {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if stream.WriteFrame(pcm[:n]) != nil { // Results reports the reason
			return
		}
	}
	asked <- time.Now()
	_ = stream.Finalize() // Results reports the error
}
